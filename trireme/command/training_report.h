#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
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
  int columns = 0;              ///< Of the terminal; 0: there is none.
};

/// Columns of the terminal that standard output is; 0 where it is none.
int terminal_columns();

/// What a long preparation is about, as a line on standard output; nothing with --json.
void say_phase(const std::string& text, bool json);

/// Says how training goes: a line every `log_every` steps, with rates of the steps since the last
/// line; on a terminal also the newest step, in a line that is written over and never wraps. For
/// rank 0.
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

  /// Ends what is left unsaid: the last steps, the line on a terminal.
  void finish();

  double median_step_ms() const;

 private:
  struct Rates {
    double step_ms = 0;
    double samples_per_s = 0;
  };
  Rates rates() const;
  double median_ms(std::size_t first) const;
  std::string line(const train::StepReport& step) const;
  void print_line(const train::StepReport& step);
  void show_newest(const train::StepReport& step);
  void clear_newest() const;
  Json json(const train::StepReport& step) const;

  void write(const Json& line);

  const layout::Plan& plan_;
  train::OptimizerOptions optimizer_;
  ReportOptions options_;
  std::FILE* metrics_ = nullptr;
  std::vector<double> seconds_;  ///< Of each step.
  std::size_t num_said_ = 0;     ///< Steps up to the last printed line.
  std::chrono::steady_clock::time_point shown_at_;
};

}  // namespace trireme::command
