#pragma once

#include <string>

#include "trireme/engine/record/opaque.h"

namespace trireme::record {

/// Empty, or why gradients of the call would be lost: its results depend on a leaf (a parameter
/// that the function captured) which is neither an input nor listed among the function's
/// parameters.
///
/// Cost   linear in the nodes that autograd recorded inside the call.
std::string unlisted_leaf(const OpaqueCall& call);

}  // namespace trireme::record
