#pragma once

#include <string>
#include <variant>
#include <vector>

#include "trireme/plan/analytic/machine.h"
#include "trireme/plan/analytic/model_shape.h"
#include "trireme/plan/analytic/train_layout.h"
#include "trireme/plan/published/run_row.h"

namespace trireme::published {

/// A published run as it can be predicted and judged.
struct RunCase {
  int row = 0;
  std::string source;
  std::string device;  ///< As the source calls it.
  analytic::ModelShape shape;
  analytic::Machine machine;
  analytic::TrainLayout layout;
  double step_s = 0;        ///< Measured.
  double memory_bytes = 0;  ///< Measured, of a device; 0: not published.
  double noise = 0;         ///< Part by which its source says that repeated steps differ: `+-40%`.

  std::string group() const { return source + " @ " + device; }
};

/// A row that cannot be, and why.
struct SkippedRun {
  int row = 0;
  std::string reason;  ///< The same words for the same cause.
  std::string detail;  ///< Field and value.
};

/// What a source does not say is taken from its model's usual shape and its device's usual host; what has no usual
/// value, as the batch, leaves the row out. Step times that are not given follow from tokens, samples or model FLOPs a second.
std::variant<RunCase, SkippedRun> make_case(const RunRow& row);

struct RunCases {
  std::vector<RunCase> cases;
  std::vector<SkippedRun> skipped;
};
RunCases make_cases(const std::vector<RunRow>& rows);

}  // namespace trireme::published
