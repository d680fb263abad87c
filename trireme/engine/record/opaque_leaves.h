#pragma once

#include <vector>

#include "trireme/model.h"

namespace trireme::record {

/// Leaves that require a gradient and that the results of the call depend on, which are neither its
/// inputs nor listed among the function's parameters. One made inside the call takes no gradient
/// from anybody; one that the function captured would lose its own.
///
/// Cost   linear in the nodes that autograd recorded inside the call.
std::vector<at::Tensor> unlisted_leaves(const OpaqueCall& call);

/// An unlisted leaf of a call and the name of the function.
struct OpaqueLeaf {
  std::string function;
  at::Tensor tensor;
};

inline constexpr const char* kCapturedLeaf =
    "it uses a parameter that it does not list, whose gradient would be lost; make it out of the "
    "module that owns the parameter, opaque(name, module)";

}  // namespace trireme::record
