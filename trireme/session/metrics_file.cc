#include "trireme/session/metrics_file.h"

#include <cerrno>
#include <chrono>
#include <cstdio>

#include "trireme/base/system_error.h"
#include "trireme/engine/train/learning_rate.h"
#include "trireme/session/run_folder.h"

namespace trireme::session {
namespace {

/// Since 1970, as the clock of this host has it.
std::int64_t unix_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

/// Nothing of what did not happen, or nobody has measured.
void add_reading(Json& json, const train::StepReading& reading, double step_seconds) {
  if (reading.batches_ready) json["batches_ready"] = *reading.batches_ready;
  if (reading.threads > 0) json["reader_threads"] = reading.threads;
  if (reading.read_seconds > 0) json["read_ms"] = reading.read_seconds * 1e3;
  if (reading.decode_seconds > 0) json["decode_ms"] = reading.decode_seconds * 1e3;
  if (reading.bytes == 0) return;
  json["read_mb_per_s"] = static_cast<double>(reading.bytes) / 1e6 / step_seconds;
}

}  // namespace

Json losses_json(const StepLosses& losses) {
  Json json = {{"loss", losses.total()}};
  for (const LossTotal& one : losses.losses) json["by_name"][one.name] = one.mean();
  return json;
}

Json step_json(const StepReport& step, std::int64_t global_batch,
               const OptimizerOptions& optimizer) {
  Json json = losses_json(step.losses);
  json["step"] = step.step;
  json["step_ms"] = step.seconds * 1e3;
  json["samples_per_s"] = static_cast<double>(global_batch) / step.seconds;
  json["data_wait_ms"] = step.data_wait_seconds * 1e3;
  json["learning_rate"] = train::learning_rate_at(optimizer, step.step);
  if (step.gradient_norm > 0) json["gradient_norm"] = step.gradient_norm;
  if (step.loss_scale > 0) json["loss_scale"] = step.loss_scale;
  if (step.is_skipped) json["skipped"] = true;
  return json;
}

MetricsFile::~MetricsFile() {
  if (file_ != nullptr) std::fclose(file_);
}

void MetricsFile::write_step(const StepReport& step, std::int64_t global_batch,
                             const OptimizerOptions& optimizer, const train::StepReading* reading) {
  Json line = step_json(step, global_batch, optimizer);
  if (reading != nullptr) add_reading(line, *reading, step.seconds);
  write(std::move(line), step.step > 0);
}

void MetricsFile::write_evaluation(std::int64_t steps_done, const StepLosses& losses,
                                   std::optional<std::chrono::duration<double, std::milli>> took) {
  Json line = {{"step", steps_done}, {"evaluation", losses_json(losses)}};
  if (took) line["evaluation_ms"] = took->count();
  write(std::move(line), steps_done > 0);
}

void MetricsFile::write(Json line, bool appends) {
  if (path_.empty()) return;
  line["time_ms"] = unix_ms();
  if (file_ == nullptr) {
    if (appends) cut_half_line(path_);
    file_ = std::fopen(path_.c_str(), appends ? "ae" : "we");
    if (file_ == nullptr) throw_system_error("write", path_, errno);
  }
  const std::string text = line.dump() + "\n";
  if (std::fputs(text.c_str(), file_) == EOF || std::fflush(file_) != 0) {
    throw_system_error("write", path_, errno);
  }
}

}  // namespace trireme::session
