#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "trireme/engine/memory/torch_threads.h"

namespace trireme::operators::internal {

using memory::on_torch_threads;  // what kernels are spread by

/// A seed from torch's CPU generator, which moves on.
std::uint64_t draw_seed();

/// What arguments of one operator must be; each throws kInvalidArgument with the operator, the
/// argument, what was expected and what came.
class Expect {
 public:
  explicit Expect(std::string op) : op_(std::move(op)) {}

  /// A dense CPU tensor of one of these types.
  void dtype(const char* name, const at::Tensor& tensor,
             std::initializer_list<at::ScalarType> types) const;
  void dims(const char* name, const at::Tensor& tensor, std::int64_t count) const;
  void shape(const char* name, const at::Tensor& tensor, c10::SymIntArrayRef sizes) const;
  void no_gradient(const char* name, const at::Tensor& tensor) const;
  void probability(const char* name, double value) const;  ///< In [0, 1).
  [[noreturn]] void fail(const std::string& expected_and_actual) const;

 private:
  std::string op_;
};

/// The operator `trireme::name`, whose implementation has this type.
template <typename Function>
c10::TypedOperatorHandle<Function> find_operator(const char* name, const char* overload = "") {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, overload).template typed<Function>();
}

/// An optional argument, none where it is undefined.
inline std::optional<at::Tensor> given(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

/// Calls kernels below autograd: what an `autograd::Function` does in forward and backward. They are
/// operators of their own, `trireme::_name`, so that tracers of Python, whose tensors hold no data,
/// see them; python/trireme says which shapes they make.
using BelowAutograd = at::AutoDispatchBelowADInplaceOrView;

/// How such a kernel is registered: for all devices, since it says itself which it takes.
template <typename Kernel>
auto kernel_below_autograd(Kernel* kernel) {
  return torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, kernel);
}

/// What an operator is given under torch's autocast on the processor: every floating tensor as f32; or, in bf16, the
/// first `num_bf16` arguments as bf16 and the rest as they are. Registered in a `TORCH_LIBRARY_IMPL(trireme, AutocastCPU, ...)`.
torch::CppFunction under_autocast(int num_bf16 = 0);

/// Integers of any width, in the order of the tensor's elements.
std::vector<std::int64_t> to_int64(const at::Tensor& tensor);

/// kInvalidArgument, with `name` and the first index, for an integer of more than 32 bits.
std::vector<std::int32_t> to_int32(const char* name, const at::Tensor& tensor);

/// What a backward without a backward of its own returns: with `create_graph` the gradients can be
/// used, and differentiating them is an error that names `op`; without, they come back unchanged.
std::vector<at::Tensor> once_differentiable(const char* op, std::vector<at::Tensor> gradients);

}  // namespace trireme::operators::internal
