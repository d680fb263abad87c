#pragma once

#include <cstddef>
#include <string_view>

#include "trireme/plan/graph/graph.h"

namespace trireme::record {

/// Batch norms by name: torch's, and ours, whose first arguments are the same.
inline bool is_batch_norm(std::string_view op) {
  return op == "aten::batch_norm" || op == "trireme::batch_norm";
}

/// Places of their arguments. The momentum of a recorded node may be a counter (a buffer) instead of
/// a number: one over what it is after its increment.
namespace batch_norm {
inline constexpr std::size_t kRunningMean = 3;
inline constexpr std::size_t kRunningVar = 4;
inline constexpr std::size_t kTraining = 5;
inline constexpr std::size_t kMomentum = 6;
}  // namespace batch_norm

/// Decides from its uses when changes of each buffer become visible (graph::BufferPolicy).
///
/// kBatchNorm   all its nodes are batch norms in training, as running mean or variance.
/// kCounter     integer; all its nodes add a constant to it in place.
/// kEager       it, or memory it shares, is written in another way.
void set_buffer_policies(graph::Graph& graph);

}  // namespace trireme::record
