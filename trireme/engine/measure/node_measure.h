#pragma once

#include <vector>

#include "trireme/engine/measure/repeats.h"
#include "trireme/engine/measure/subject.h"
#include "trireme/plan/profile/profile.h"

namespace trireme::measure {

/// Distinct nodes and which one each node is; as in profile::Profile.
struct NodeCosts {
  std::vector<profile::NodeCost> costs;
  std::vector<int> cost_of;
};

/// Measures every distinct node (`node_key`) of the recording once, at its first place in a forward
/// pass over `batch`, on the values that it gets there.
///
/// The backward B is timed as a whole, and I and W by calls that make only gradients of activations
/// or of parameters; they are given in that ratio, adding up to B, so that a backward that computes
/// both at once is not counted twice. What a call of the backward engine costs for itself is
/// subtracted: a real backward is one call for all nodes.
///
/// Buffers are left as they were. Times are medians over the ranks. What is kept is told by the
/// first rank alone, while the others wait: it counts bytes of its process.
///
/// Errors   kInvalidArgument where the recording is not of train mode, or the block allocator is
///          not installed.
/// Cost     about four times `options` for each distinct node.
NodeCosts measure_nodes(const Subject& subject, const RepeatOptions& options);

}  // namespace trireme::measure
