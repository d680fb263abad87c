#pragma once

#include "trireme/engine/train/run_record.h"
#include "trireme/engine/train/workload.h"

namespace trireme::train {

/// Gives the model's parameters and buffers these values, and memory where theirs is elsewhere: a
/// training has ended and the module is to be used. tensors: of gather_state; shares them.
void give_state(const Model& model, const Tensors& tensors);

}  // namespace trireme::train
