#pragma once

#include "trireme/engine/measure/node_trial.h"
#include "trireme/plan/profile/profile.h"

namespace trireme::measure {

/// Fills in what the backward of a node keeps and the memory that forward and backward need beside:
/// saved_inputs, saved_outputs, kept_bytes and the workspaces of `cost`.
///
/// A storage is saved if the backward alone adds holders to it. The rest counts live bytes of the
/// process: the block allocator must be installed (memory::apply_torch_settings), and no other
/// thread may make tensors meanwhile.
void measure_memory(NodeTrial& trial, profile::NodeCost& cost);

}  // namespace trireme::measure
