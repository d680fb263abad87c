#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "trireme/base/json.h"
#include "trireme/engine/train/step_reading.h"
#include "trireme/session.h"

namespace trireme::session {

/// Total and losses by name.
Json losses_json(const StepLosses& losses);

/// A line of the metrics file (docs/formats.md), but for its time.
Json step_json(const StepReport& step, std::int64_t global_batch,
               const OptimizerOptions& optimizer);

/// JSON lines with their times, one per step and evaluation, on rank 0. The first decides how the file is opened:
/// where it is of a later step, after what a killed run has written whole; else the file begins anew. Errors of what
/// writes: kIo, kResourceExhausted, naming the file.
class MetricsFile {
 public:
  /// path   empty: nothing is written.
  explicit MetricsFile(std::string path) : path_(std::move(path)) {}
  ~MetricsFile();
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;

  /// reading   of this rank; null where one process runs all stages.
  void write_step(const StepReport& step, std::int64_t global_batch,
                  const OptimizerOptions& optimizer, const train::StepReading* reading);
  /// took   nothing where it was made elsewhere.
  void write_evaluation(std::int64_t steps_done, const StepLosses& losses,
                        std::optional<std::chrono::duration<double, std::milli>> took);

 private:
  void write(Json line, bool appends);

  std::string path_;
  std::FILE* file_ = nullptr;
};

}  // namespace trireme::session
