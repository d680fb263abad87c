#include "trireme/command/training_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "trireme/base/system_error.h"

namespace trireme::command {
namespace {

std::string duration_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds);
  if (whole >= 3600)
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace

std::string losses_text(const program::StepLosses& losses) {
  std::string text = fmt::format("loss {:.6f}", losses.total());
  if (losses.losses.size() < 2) return text;
  for (const program::LossTotal& one : losses.losses) {
    text += fmt::format(", {} {:.6f}", one.name, one.mean());
  }
  return text;
}

Json losses_json(const program::StepLosses& losses) {
  Json json = {{"loss", losses.total()}};
  for (const program::LossTotal& one : losses.losses) json["by_name"][one.name] = one.mean();
  return json;
}

TrainingReport::TrainingReport(const layout::Plan& plan, const train::OptimizerOptions& optimizer,
                               ReportOptions options)
    : plan_(plan),
      optimizer_(optimizer),
      options_(std::move(options)),
      is_terminal_(isatty(STDOUT_FILENO) == 1) {
  if (options_.metrics_file.empty()) return;
  metrics_ = std::fopen(options_.metrics_file.c_str(), options_.first_step == 0 ? "we" : "ae");
  if (metrics_ == nullptr) throw_system_error("write", options_.metrics_file, errno);
}

TrainingReport::~TrainingReport() {
  if (metrics_ != nullptr) std::fclose(metrics_);
}

double TrainingReport::median_step_ms() const {
  if (seconds_.empty()) return 0;
  std::vector<double> sorted = seconds_;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle * 1e3;
}

Json TrainingReport::json(const train::StepReport& step) const {
  Json json = losses_json(step.losses);
  json["step"] = step.step;
  json["step_ms"] = step.seconds * 1e3;
  json["samples_per_s"] = static_cast<double>(plan_.batch.global_batch) / step.seconds;
  json["data_wait_ms"] = step.data_wait_seconds * 1e3;
  json["learning_rate"] = train::learning_rate_at(optimizer_, step.step);
  if (step.gradient_norm > 0) json["gradient_norm"] = step.gradient_norm;
  return json;
}

std::string TrainingReport::line(const train::StepReport& step) const {
  const double rate = static_cast<double>(plan_.batch.global_batch) / step.seconds;
  std::string text = fmt::format("step {:>6}  {}  {:.0f} samples/s  {:.1f} ms", step.step,
                                 losses_text(step.losses), rate, step.seconds * 1e3);
  if (plan_.prediction) text += fmt::format(" (predicted {:.1f})", plan_.prediction->step_ms);
  const double left = static_cast<double>(options_.num_steps - step.step - 1);
  return text + "  " + duration_text(left * median_step_ms() / 1e3) + " to go";
}

void TrainingReport::write(const Json& line) {
  if (metrics_ == nullptr) return;
  const std::string text = line.dump() + "\n";
  if (std::fputs(text.c_str(), metrics_) == EOF || std::fflush(metrics_) != 0) {
    throw_system_error("write", options_.metrics_file, errno);
  }
}

void TrainingReport::write_evaluation(std::int64_t step, const program::StepLosses& losses) {
  write({{"step", step}, {"evaluation", losses_json(losses)}});
}

void TrainingReport::print_evaluation(std::int64_t step, const program::StepLosses& losses) const {
  if (options_.json) {
    fmt::print("{}\n", Json{{"step", step}, {"evaluation", losses_json(losses)}}.dump());
  } else {
    fmt::print("{}after {} steps, evaluation {}\n", is_terminal_ ? "\r\033[K" : "", step,
               losses_text(losses));
  }
  std::fflush(stdout);
}

void TrainingReport::add(const train::StepReport& step) {
  seconds_.push_back(step.seconds);
  write(json(step));
  const bool is_due = step.step % options_.log_every == 0 || step.step + 1 == options_.num_steps;
  if (options_.json) {
    if (is_due) fmt::print("{}\n", json(step).dump());
  } else if (is_terminal_) {
    fmt::print("\r\033[K{}", line(step));
  } else if (is_due) {
    fmt::print("{}\n", line(step));
  }
  std::fflush(stdout);
}

void TrainingReport::finish() {
  if (is_terminal_ && !options_.json && !seconds_.empty()) fmt::print("\n");
}

}  // namespace trireme::command
