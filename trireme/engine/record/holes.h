#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/operator_name.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace trireme::record {

/// What a recording of operators cannot see or a replay cannot repeat ("holes"), told by its signs.

/// A range without an operator: its backward, if it has one, is not known to the dispatcher.
inline constexpr const char* kForeignRegion =
    "it is no operator but a foreign region (autograd::grad inside forward, a compiled region, a "
    "Python autograd.Function)";

inline constexpr const char* kShapeFromData = "the shape of its result depends on data";

/// Indexing with a mask: as many rows as the mask has true elements.
bool picks_by_mask(const c10::OperatorName& name, c10::ArrayRef<const c10::IValue> inputs);

/// `one_hot` with the number of classes given: its shape does not depend on data then.
bool has_given_classes(const c10::OperatorName& name, c10::ArrayRef<const c10::IValue> inputs);

/// Why an operator cannot be repeated whatever its arguments are; nothing where it can.
std::optional<std::string> hole_of_operator(const c10::OperatorName& name);

enum class OutputKind : std::uint8_t {
  kTensors,      ///< Goes into the graph.
  kMetadata,     ///< Sizes, dtypes: known when recording, no node needed.
  kValueLeaves,  ///< Numbers computed from data: a hole.
};

OutputKind hole_of_outputs(const c10::OperatorName& name, const std::vector<c10::IValue>& outputs);

/// A vmap or another functorch transform is active on this thread.
bool is_functorch_active();

/// Somebody is told of the gradient of `tensor`, or of the node that makes it, and may change it.
bool has_hooks(const at::Tensor& tensor);

/// The operator returns memory that only a later write (or host code) fills.
bool makes_uninitialised_memory(const std::string& op);

}  // namespace trireme::record
