#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trireme/engine/measure/measurement.h"
#include "trireme/engine/program/boundary_copy.h"
#include "trireme/engine/program/stage_chain.h"
#include "trireme/engine/program/stage_program.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::measure {

/// The ranges between cuts as the stages that they would be, run microbatch by microbatch; keeps
/// how long each took. Gradients of parameters are dropped as they come.
///
/// Confined to one thread. The subject outlives it; buffers change (WriteGuard).
class RangeRuns {
 public:
  /// Where ranges are captured, it runs the microbatches by which they are.
  ///
  /// cuts   ascending, allowed.
  RangeRuns(const Subject& subject, std::span<const int> cuts,
            program::Capture capture = program::Capture::kOff);

  /// Whether a range is.
  bool is_captured() const;

  /// A microbatch that has gone forward and holds its activations: a run of each range.
  using Microbatch = std::vector<program::StageRun>;

  Microbatch forward();

  /// Back through all ranges; lets go of the activations.
  void backward(Microbatch runs);

  /// By range, by call: microseconds.
  const std::vector<std::vector<double>>& forward_us() const { return forward_us_; }
  const std::vector<std::vector<double>>& backward_us() const { return backward_us_; }
  const layout::Plan& plan() const { return plan_; }

  /// What was measured since the last call, all ranges together.
  Microseconds take_time();

  /// Forgets the first `num` calls of each.
  void drop(int num);

  /// Forgets all of them.
  void forget();

 private:
  class DroppingSink : public program::GradientSink {
   public:
    void accept(int, const at::Tensor&) override {}
  };

  program::StageChain::Around timed(std::vector<std::vector<double>>& times);

  const Batch& batch_;
  const std::int64_t num_samples_;
  const layout::Plan plan_;
  DroppingSink sink_;
  const program::SiteTable sites_;
  const std::vector<double> totals_;
  program::StageChain stages_;
  std::vector<std::vector<double>> forward_us_;
  std::vector<std::vector<double>> backward_us_;
  Microseconds time_{0};
};

}  // namespace trireme::measure
