#pragma once

#include "trireme/model.h"

namespace trireme::program {

/// Runs an opaque function on tensors of a replay. Its inside is a graph of its own, run backward
/// within the outer backward: gradients leave through the inputs and the stand-ins alone.
///
/// inputs      what the recorded call got.
/// stand_ins   one for each parameter of the function, in its order; their memory is that of the
///             function's own parameters.
/// Threads     the function's parameters are shared by all its calls; calls and backward of one
///             function must not overlap.
TensorList replay_opaque(const OpaqueFunction& function, const TensorList& inputs,
                         const TensorList& stand_ins);

}  // namespace trireme::program
