#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trireme/model.h"

namespace trireme::reference {

/// The loop a user would write around the unmodified model with plain autograd: forward and
/// backward of each microbatch, gradients added up by torch. What the executors are checked
/// against.
///
/// Where a loss has a weight, all forwards of a step run before its first backward, since the seeds
/// need the totals; else each microbatch's backward follows its forward.
/// Random operators draw from the streams of the nodes that they would be recorded as.
class PlainLoop {
 public:
  PlainLoop(const Model& model, std::uint64_t seed) : model_(model), seed_(seed) {}

  /// Losses of the step; leaves its gradients in `.grad` of the parameters, replacing older ones.
  StepLosses run_step(std::int64_t step, const std::vector<Batch>& microbatches);

 private:
  const Model& model_;
  std::uint64_t seed_;
};

}  // namespace trireme::reference
