#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trireme/base/json.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/session.h"

namespace trireme::command {

std::string losses_text(const StepLosses& losses);

struct ReportOptions {
  std::int64_t num_steps = 0;
  std::int64_t log_every = 10;
  bool json = false;
  int columns = 0;  ///< Of the terminal; 0: there is none.
};

/// Columns of the terminal that standard output is; 0 where it is none.
int terminal_columns();

/// What a long preparation is about, as a line on standard output; nothing with --json.
void say_phase(const std::string& text, bool json);

/// A line on standard output; with --json as one of the metrics file.
void print_evaluation(std::int64_t steps_done, const StepLosses& losses, bool json);

/// Says how training goes: a line every `log_every` steps, with rates of the steps since the last
/// line; on a terminal also the newest step, in a line that is written over and never wraps. For
/// rank 0.
class TrainingReport {
 public:
  TrainingReport(const layout::Plan& plan, const OptimizerOptions& optimizer,
                 ReportOptions options);

  void add(const StepReport& step);

  /// step   steps that were done before.
  void print_evaluation(std::int64_t step, const StepLosses& losses) const;

  /// Ends what is left unsaid: the last steps, the line on a terminal.
  void finish();

 private:
  struct Rates {
    double step_ms = 0;
    double samples_per_s = 0;
  };
  Rates rates() const;
  double median_ms(std::size_t first) const;
  std::string line(const StepReport& step) const;
  void print_line(const StepReport& step);
  void show_newest(const StepReport& step);
  void clear_newest() const;
  Json json(const StepReport& step) const;

  const layout::Plan& plan_;
  OptimizerOptions optimizer_;
  ReportOptions options_;
  std::vector<double> seconds_;  ///< Of each step.
  std::size_t num_said_ = 0;     ///< Steps up to the last printed line.
  std::chrono::steady_clock::time_point shown_at_;
};

}  // namespace trireme::command
