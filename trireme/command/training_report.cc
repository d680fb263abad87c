#include "trireme/command/training_report.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "trireme/session/metrics_file.h"

namespace trireme::command {
namespace {

std::string duration_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds);
  if (whole >= 3600)
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace

std::string losses_text(const StepLosses& losses) {
  std::string text = fmt::format("loss {:.6f}", losses.total());
  if (losses.losses.size() < 2) return text;
  for (const LossTotal& one : losses.losses) {
    const bool is_said = one.name == "loss" && one.mean() == losses.total();
    if (!is_said) text += fmt::format(", {} {:.6f}", one.name, one.mean());
  }
  return text;
}

TrainingReport::TrainingReport(const layout::Plan& plan, const OptimizerOptions& optimizer,
                               ReportOptions options)
    : plan_(plan), optimizer_(optimizer), options_(std::move(options)) {}

/// Of the steps from `first` on.
double TrainingReport::median_ms(std::size_t first) const {
  if (seconds_.size() <= first) return 0;
  std::vector<double> sorted(seconds_.begin() + static_cast<std::ptrdiff_t>(first), seconds_.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle * 1e3;
}

Json TrainingReport::json(const StepReport& step) const {
  return session::step_json(step, plan_.batch.global_batch, optimizer_);
}

/// Of the steps since the last line: one beside a checkpoint would say little about the others.
TrainingReport::Rates TrainingReport::rates() const {
  const auto begin = seconds_.begin() + static_cast<std::ptrdiff_t>(num_said_);
  const double seconds = std::accumulate(begin, seconds_.end(), 0.0);
  const auto num_steps = static_cast<double>(seconds_.end() - begin);
  return {.step_ms = 1e3 * seconds / num_steps,
          .samples_per_s = num_steps * static_cast<double>(plan_.batch.global_batch) / seconds};
}

std::string TrainingReport::line(const StepReport& step) const {
  const Rates now = rates();
  std::string text = fmt::format("step {:>6}  {}  {:.0f} samples/s  {:.1f} ms", step.step,
                                 losses_text(step.losses), now.samples_per_s, now.step_ms);
  if (plan_.prediction) text += fmt::format(" (predicted {:.1f})", plan_.prediction->step_ms);
  constexpr std::size_t kLatest = 256;  // a line costs as much after a million steps
  const double step_ms = median_ms(seconds_.size() - std::min(seconds_.size(), kLatest));
  const double left = static_cast<double>(options_.num_steps - step.step - 1);
  return text + "  " + duration_text(left * step_ms / 1e3) + " to go";
}

void print_evaluation(std::int64_t steps_done, const StepLosses& losses, bool json) {
  if (json) {
    fmt::print("{}\n",
               Json{{"step", steps_done}, {"evaluation", session::losses_json(losses)}}.dump());
  } else {
    fmt::print("after {} steps, evaluation {}\n", steps_done, losses_text(losses));
  }
  std::fflush(stdout);
}

void TrainingReport::print_evaluation(std::int64_t step, const StepLosses& losses) const {
  if (!options_.json) clear_newest();
  command::print_evaluation(step, losses, options_.json);
}

void TrainingReport::add(const StepReport& step) {
  seconds_.push_back(step.seconds);
  const bool is_due = step.step % options_.log_every == 0 || step.step + 1 == options_.num_steps;
  if (is_due) {
    print_line(step);
  } else if (options_.columns > 0 && !options_.json) {
    show_newest(step);
  }
}

void TrainingReport::print_line(const StepReport& step) {
  clear_newest();
  fmt::print("{}\n", options_.json ? json(step).dump() : line(step));
  std::fflush(stdout);
  num_said_ = seconds_.size();
}

/// Ten times a second at most, cut off where the terminal ends.
void TrainingReport::show_newest(const StepReport& step) {
  const auto now = std::chrono::steady_clock::now();
  if (now - shown_at_ < std::chrono::milliseconds(100)) return;
  shown_at_ = now;
  const auto most = static_cast<std::size_t>(options_.columns - 1);
  fmt::print("\r\033[K{}", line(step).substr(0, most));
  std::fflush(stdout);
}

void TrainingReport::clear_newest() const {
  if (options_.columns > 0 && !options_.json) fmt::print("\r\033[K");
}

void TrainingReport::finish() {
  clear_newest();
  std::fflush(stdout);
}

int terminal_columns() {
  winsize size{};
  if (isatty(STDOUT_FILENO) != 1) return 0;
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void say_phase(const std::string& text, bool json) {
  if (json) return;
  fmt::print("{}\n", text);
  std::fflush(stdout);
}

}  // namespace trireme::command
