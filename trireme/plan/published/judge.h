#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trireme/plan/analytic/achieved.h"
#include "trireme/plan/published/run_case.h"

namespace trireme::published {

/// How far predictions are from what was measured. Errors: predicted / measured - 1, without sign.
struct ErrorSummary {
  double median = 0;
  double mean = 0;  ///< MAPE.
  double worst = 0;
  double bias = 0;  ///< Median with sign.
  double rank_correlation =
      0;  ///< Spearman's, of steps; NaN for fewer than three cases or where all are equal.
};

/// Of lists of the same length, of at least one.
ErrorSummary summarize(std::span<const double> predicted, std::span<const double> measured);

/// Spearman's rank correlation, equal values having the mean of their ranks.
double rank_correlation(std::span<const double> a, std::span<const double> b);

/// A judged run.
struct JudgedRun {
  RunCase run;
  double step_s = 0;        ///< Predicted.
  double linear_s = 0;      ///< By the linear fit.
  double memory_bytes = 0;  ///< Predicted, of the fullest rank.
};

struct JudgedGroup {
  std::string name;
  std::size_t num_cases = 0;
  ErrorSummary predicted, linear;
  std::size_t num_with_memory = 0;
  ErrorSummary memory;  ///< Of those.
};

struct Judgement {
  std::size_t num_calibration = 0;
  analytic::AchievedByDevice achieved;
  std::vector<JudgedGroup> groups;  ///< In the order of the file.
  JudgedGroup all;                  ///< All judged cases, median over cases.
  std::vector<JudgedRun> runs;      ///< The judged ones.
};

/// Which runs a word means: those whose source contains it, or for `source@device` whose source and
/// device do, whatever the case of letters; `all`: every one.
bool is_meant(const std::string& word, const RunCase& one);

/// Calibrates on the runs that are meant, and judges others: those of `judge`, or all others.
///
/// Errors   kInvalidArgument where a word means no run, listing the groups, or a run is meant on both
///          sides, naming its row.
Judgement judge(std::span<const RunCase> cases, const std::vector<std::string>& calibrate_words,
                const std::vector<std::string>& judge_words);

/// How runs are left out in turn.
enum class LeaveOut : std::uint8_t {
  kGroup,  ///< Those of a source and device.
  kSource,
  kDevice,  ///< Those of a kind of device, whatever the source.
  kFifth,  ///< Every fifth run, so that others of its group calibrate: no forecast, but cross-validation.
};

/// For each group: all others calibrate, it is judged. The groups together.
Judgement judge_each(std::span<const RunCase> cases, LeaveOut what);

}  // namespace trireme::published
