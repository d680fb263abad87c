#include "trireme/engine/operators/kernel_operator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/functions/basic_ops.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <utility>

#include "trireme/error.h"

namespace trireme::operators::internal {

namespace {

template <typename Text>
std::string text_of(const Text& value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

/// Floating arguments [0, count) of a call in another dtype.
void cast(torch::jit::Stack& stack, std::size_t first, std::size_t count, at::ScalarType dtype) {
  for (std::size_t i = first; i < first + count; ++i) {
    if (!stack[i].isTensor() || !stack[i].toTensor().defined()) continue;
    const at::Tensor tensor = stack[i].toTensor();
    const bool is_narrow = tensor.scalar_type() == at::kBFloat16 ||
                           tensor.scalar_type() == at::kHalf || tensor.scalar_type() == at::kFloat;
    if (is_narrow && tensor.scalar_type() != dtype) stack[i] = tensor.to(dtype);
  }
}

class Autocasting : public c10::OperatorKernel {
 public:
  explicit Autocasting(int num_bf16) : num_bf16_(num_bf16) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
    const c10::impl::ExcludeDispatchKeyGuard plainly(c10::DispatchKey::AutocastCPU);
    const std::size_t count = op.schema().arguments().size();
    const std::size_t first = stack->size() - count;
    if (num_bf16_ > 0 && at::autocast::get_autocast_dtype(at::kCPU) == at::kBFloat16) {
      cast(*stack, first, static_cast<std::size_t>(num_bf16_), at::kBFloat16);
    } else {
      cast(*stack, first, count, at::kFloat);
    }
    op.callBoxed(stack);
  }

 private:
  int num_bf16_;
};

}  // namespace

torch::CppFunction under_autocast(int num_bf16) {
  return torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Autocasting>(num_bf16));
}

std::uint64_t draw_seed() {
  auto* generator = at::get_generator_or_default<at::CPUGeneratorImpl>(
      std::nullopt, at::detail::getDefaultCPUGenerator());
  const std::lock_guard lock(generator->mutex_);
  return generator->random64();
}

void Expect::fail(const std::string& expected_and_actual) const {
  throw Error(ErrorKind::kInvalidArgument, "trireme::" + op_ + ": " + expected_and_actual);
}

void Expect::dtype(const char* name, const at::Tensor& tensor,
                   std::initializer_list<at::ScalarType> types) const {
  if (!tensor.defined()) fail(std::string(name) + " is an undefined tensor");
  if (!tensor.is_cpu() || tensor.layout() != at::kStrided) {
    fail(std::string(name) + " must be a dense tensor on the CPU, is " + text_of(tensor.layout()) +
         " on " + tensor.device().str());
  }
  if (std::find(types.begin(), types.end(), tensor.scalar_type()) != types.end()) return;
  std::string expected;
  for (at::ScalarType type : types) {
    expected += (expected.empty() ? "" : " or ") + std::string(at::toString(type));
  }
  fail(std::string(name) + " must be of type " + expected + ", is " +
       at::toString(tensor.scalar_type()));
}

void Expect::dims(const char* name, const at::Tensor& tensor, std::int64_t count) const {
  if (tensor.dim() == count) return;
  fail(std::string(name) + " must have " + std::to_string(count) + " dimensions, has shape " +
       text_of(tensor.sym_sizes()));
}

void Expect::shape(const char* name, const at::Tensor& tensor, c10::SymIntArrayRef sizes) const {
  if (tensor.sym_sizes() == sizes) return;
  fail(std::string(name) + " must have shape " + text_of(sizes) + ", has " +
       text_of(tensor.sym_sizes()));
}

void Expect::no_gradient(const char* name, const at::Tensor& tensor) const {
  if (!tensor.defined() || !tensor.requires_grad()) return;
  fail(std::string(name) + " requires a gradient, but has none here; detach() it");
}

void Expect::probability(const char* name, double value) const {
  if (value >= 0 && value < 1) return;
  fail(std::string(name) + " must be in [0, 1), is " + text_of(value));
}

std::vector<std::int64_t> to_int64(const at::Tensor& tensor) {
  const at::Tensor own = tensor.to(at::kLong).contiguous();
  const auto* first = own.const_data_ptr<std::int64_t>();
  return {first, first + own.numel()};
}

std::vector<std::int32_t> to_int32(const char* name, const at::Tensor& tensor) {
  std::vector<std::int32_t> integers;
  for (const std::int64_t value : to_int64(tensor)) {
    if (!std::in_range<std::int32_t>(value)) {
      throw Error(ErrorKind::kInvalidArgument,
                  std::string(name) + "[" + std::to_string(integers.size()) + "] is " +
                      std::to_string(value) + ", which does not fit 32 bits");
    }
    integers.push_back(static_cast<std::int32_t>(value));
  }
  return integers;
}

std::vector<at::Tensor> once_differentiable(const char* op, std::vector<at::Tensor> gradients) {
  if (!at::GradMode::is_enabled()) return gradients;
  // Autograd sees what comes out as made of these, by a node that refuses.
  for (at::Tensor& gradient : gradients) {
    if (gradient.defined()) gradient = gradient.detach().requires_grad_();
  }
  const auto refusal = std::make_shared<torch::autograd::DelayedError>(
      "trireme::" + std::string(op) + " has no second derivative: its gradients were made with " +
          "create_graph and then differentiated; detach() them",
      static_cast<std::int64_t>(gradients.size()));
  return (*refusal)(std::move(gradients));
}

}  // namespace trireme::operators::internal
