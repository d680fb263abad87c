#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "trireme/base/json.h"
#include "trireme/engine/train/training_options.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::command {

std::string losses_text(const program::StepLosses& losses);
Json losses_json(const program::StepLosses& losses);

struct ReportOptions {
  std::int64_t num_steps = 0;
  std::int64_t log_every = 10;
  bool json = false;
  std::string metrics_file;     ///< JSON lines, one per step; none where it is empty.
  std::int64_t first_step = 0;  ///< From a later one than 0 on, the metrics are appended to.
};

/// Says how training goes: on a terminal one line that is written over, elsewhere a line every
/// `log_every` steps. Nothing on other ranks than 0.
class TrainingReport {
 public:
  /// Errors   of this and of what writes: kIo, kResourceExhausted, naming the metrics file.
  TrainingReport(const layout::Plan& plan, const train::OptimizerOptions& optimizer,
                 ReportOptions options);
  ~TrainingReport();
  TrainingReport(const TrainingReport&) = delete;
  TrainingReport& operator=(const TrainingReport&) = delete;

  void add(const train::StepReport& step);

  /// Into the metrics; to people. step: steps that were done before.
  void write_evaluation(std::int64_t step, const program::StepLosses& losses);
  void print_evaluation(std::int64_t step, const program::StepLosses& losses) const;

  /// Ends the line on a terminal.
  void finish();

  double median_step_ms() const;

 private:
  std::string line(const train::StepReport& step) const;
  Json json(const train::StepReport& step) const;

  void write(const Json& line);

  const layout::Plan& plan_;
  train::OptimizerOptions optimizer_;
  ReportOptions options_;
  bool is_terminal_;
  std::FILE* metrics_ = nullptr;
  std::vector<double> seconds_;
};

}  // namespace trireme::command
