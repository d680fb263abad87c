#include "trireme/engine/operators/arguments.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <mutex>
#include <sstream>

#include "trireme/base/error.h"

namespace trireme::operators::internal {
namespace {

template <typename Text>
std::string text_of(const Text& value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

template <typename Integer>
std::vector<Integer> integers(const at::Tensor& tensor, at::ScalarType type) {
  const at::Tensor own = tensor.to(type).contiguous();
  const auto* first = own.const_data_ptr<Integer>();
  return {first, first + own.numel()};
}

}  // namespace

void on_torch_threads(std::int64_t n, const kernels::Piece& piece) {
  at::parallel_for(0, n, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) piece(i);
  });
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
    fail(std::string(name) + " must be a dense tensor on the CPU, is on " + tensor.device().str());
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
       text_of(tensor.sizes()));
}

void Expect::shape(const char* name, const at::Tensor& tensor, at::IntArrayRef sizes) const {
  if (tensor.sizes() == sizes) return;
  fail(std::string(name) + " must have shape " + text_of(sizes) + ", has " +
       text_of(tensor.sizes()));
}

void Expect::no_gradient(const char* name, const at::Tensor& tensor) const {
  if (!tensor.defined() || !tensor.requires_grad()) return;
  fail(std::string(name) + " requires a gradient, but has none here; detach() it");
}

std::vector<std::int64_t> to_int64(const at::Tensor& tensor) {
  return integers<std::int64_t>(tensor, at::kLong);
}

std::vector<std::int32_t> to_int32(const at::Tensor& tensor) {
  return integers<std::int32_t>(tensor, at::kInt);
}

}  // namespace trireme::operators::internal
