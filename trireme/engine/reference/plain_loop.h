#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
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
  using Counts = std::function<bool(std::int64_t step, const std::string& loss)>;

  /// counts   whether a loss has gradients in a step; empty: all have.
  PlainLoop(const Model& model, std::uint64_t seed, Counts counts = {})
      : model_(model), seed_(seed), counts_(std::move(counts)) {}

  /// Losses of the step; leaves its gradients in `.grad` of the parameters, replacing older ones.
  StepLosses run_step(std::int64_t step, const std::vector<Batch>& microbatches);

 private:
  Losses forward(std::int64_t step, std::size_t microbatch, const Batch& batch) const;

  const Model& model_;
  std::uint64_t seed_;
  Counts counts_;
};

}  // namespace trireme::reference
