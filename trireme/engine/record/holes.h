#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/operator_name.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trireme/engine/record/observer.h"
#include "trireme/error.h"

namespace trireme::record {

/// What a recording of operators cannot see or a replay cannot repeat ("holes"), told by its signs.

/// What is no problem for a model that can do without it (`Model::set_traced`): data decides on
/// control flow or shapes.
class DataProblem : public Error {
 public:
  DataProblem(std::string problem, const std::string& remedy)
      : Error(ErrorKind::kInvalidArgument, problem + ". " + remedy), problem_(std::move(problem)) {}

  /// Without what to do about it.
  const std::string& problem() const { return problem_; }

 private:
  std::string problem_;
};

/// A range without an operator: its backward, if it has one, is not known to the dispatcher.
inline constexpr const char* kForeignRegion =
    "it is no operator but a foreign region (autograd::grad inside forward, a compiled region, a "
    "Python autograd.Function)";

inline constexpr const char* kShapeFromData = "the shape of its result depends on data";

/// Indexing with a mask: as many rows as the mask has true elements.
bool picks_by_mask(const c10::OperatorName& name, c10::ArrayRef<const c10::IValue> inputs);

/// Of an operator whose shape depends on values: the arguments that it depends on (a mask, the repeats, else all).
c10::ArrayRef<const c10::IValue> what_decides_shape(const c10::OperatorName& name,
                                                    c10::ArrayRef<const c10::IValue> inputs);

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

/// The operator's tensors say which shape its result is to have, not which values.
bool takes_shape_alone(const std::string& op);

/// The operator returns memory that only a later write (or host code) fills.
bool makes_uninitialised_memory(const std::string& op);

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
