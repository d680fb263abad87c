#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "trireme/base/json.h"
#include "trireme/session.h"

namespace trireme::session {

/// Total and losses by name.
Json losses_json(const StepLosses& losses);

/// A line of the metrics file (docs/formats.md).
Json step_json(const StepReport& step, std::int64_t global_batch,
               const OptimizerOptions& optimizer);

/// JSON lines, one per step and evaluation. For rank 0.
class MetricsFile {
 public:
  /// appends   after what a killed run has written whole; else the file begins anew.
  /// Errors    of this and of what writes: kIo, kResourceExhausted, naming the file.
  MetricsFile(std::string path, bool appends);
  ~MetricsFile();
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;

  void write(const Json& line);

 private:
  std::string path_;
  std::FILE* file_ = nullptr;
};

}  // namespace trireme::session
