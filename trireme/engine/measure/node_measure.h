#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "trireme/engine/measure/measurement.h"
#include "trireme/engine/measure/node_trial.h"
#include "trireme/engine/record/recording.h"
#include "trireme/plan/profile/profile.h"

namespace trireme::measure {

/// Runs the recorded forward once on `batch`, node after node, without keeping history: memory is
/// that of a forward without a backward.
///
/// batch   with its step scalars.
/// visit   called before each node runs, with the node at its place.
/// What the forward writes to buffers stays written.
void walk_forward(const record::Recording& recording, const Batch& batch,
                  const std::function<void(NodeTrial&)>& visit);

/// Fills in what the backward of a node keeps and the memory that forward and backward need beside:
/// saved_inputs, saved_outputs, kept_bytes and the workspaces of `cost`.
///
/// A storage is saved if the backward alone adds holders to it. The rest counts live bytes of the
/// process: the block allocator must be installed (memory::apply_torch_settings), and no other
/// thread may make tensors meanwhile.
void measure_memory(NodeTrial& trial, profile::NodeCost& cost);

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
