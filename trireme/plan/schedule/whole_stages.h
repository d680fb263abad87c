#pragma once

#include <vector>

#include "trireme/plan/schedule/action.h"

namespace trireme::schedule {

// Replicas that shard parameters (Plan::sharded_parameters) have the values of a stage whole around its actions. A run is
// actions of one stage, one after another. During a run the values of its stage are whole, and those of the run after it
// are on their way: so two stages at most. Three stages on a rank, `simple`, two microbatches; u, w, r for unshard, await,
// reshard:
//
//     u0 u1 w0 | 0F0 0F1 | r0 u2 w1 | 1F0 1F1 | w2 | 2F0 2F1 2B0 2B1 | r2 u0 | 1B0 1B1 | r1 w0 | 0B0 0B1 | r0
//
// Stage 1 is kept in the middle, since the run after stage 2's is its own.

/// Stages whose values change between two actions of a rank, in this order.
struct ValueMoves {
  std::vector<int> reshard;
  std::vector<int> unshard;
  std::vector<int> await;
  bool operator==(const ValueMoves&) const = default;
};

/// Before each action, and after the last: [actions.size() + 1].
///
/// Cost   number of actions.
std::vector<ValueMoves> value_moves(const std::vector<Action>& actions);

}  // namespace trireme::schedule
