#include "python/backend/buffers.h"

#include <ATen/ATen.h>

#include <optional>
#include <string>
#include <utility>

#include "trireme/error.h"
#include "trireme/kernels/reduce/combine.h"

namespace trireme::backend {
namespace {

using kernels::ReduceOp;

std::optional<Dtype> dtype_of(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return Dtype::kF64;
    case at::kFloat:
      return Dtype::kF32;
    case at::kHalf:
      return Dtype::kF16;
    case at::kBFloat16:
      return Dtype::kBf16;
    case at::kLong:
      return Dtype::kI64;
    case at::kInt:
      return Dtype::kI32;
    case at::kShort:
      return Dtype::kI16;
    case at::kChar:
      return Dtype::kI8;
    case at::kByte:
      return Dtype::kU8;
    case at::kBool:
      return Dtype::kBool;
    default:
      return std::nullopt;
  }
}

/// The signed type of as many bits; nothing where that is no unsigned one.
std::optional<at::ScalarType> signed_of(at::ScalarType type) {
  if (type == at::kUInt16) return at::kShort;
  if (type == at::kUInt32) return at::kInt;
  if (type == at::kUInt64) return at::kLong;
  return std::nullopt;
}

bool is_sum(ReduceOp op) {
  return op == ReduceOp::kSum || op == ReduceOp::kAverage || op == ReduceOp::kScaledSum;
}

/// Of a two's complement number of the signed type: turns its order into that of the unsigned one.
void turn_highest_bit(const at::Tensor& whole) {
  const int bits = static_cast<int>(whole.element_size()) * 8;
  const auto highest = static_cast<std::int64_t>(~std::uint64_t{0} << (bits - 1));
  whole.bitwise_xor_(at::Scalar(highest));
}

[[noreturn]] void refuse(const at::Tensor& tensor, ReduceOp op) {
  throw Error(ErrorKind::kInvalidArgument, "there is no " + std::string(to_text(op)) + " of " +
                                               std::string(at::toString(tensor.scalar_type())) +
                                               " elements; convert them first");
}

void copy_result(const at::Tensor& result, const at::Tensor& target) {
  if (target.data_ptr() == result.data_ptr() && is_plain(target)) return;
  target.copy_(result.view(target.sizes()));
}

/// Parts of complex numbers.
Reducible reducible_parts(const at::Tensor& tensor, const collectives::Reduce& by, int group_size) {
  if (!is_sum(by.op) || tensor.scalar_type() == at::kComplexHalf) refuse(tensor, by.op);
  const at::Tensor numbers = plain(tensor);
  Reducible parts = make_reducible(at::view_as_real(numbers), by, group_size);
  parts.is_copy = numbers.data_ptr() != tensor.data_ptr();
  parts.finish = [](const at::Tensor& result, const at::Tensor& target) {
    copy_result(at::view_as_complex(result.view({-1, 2})), target);
  };
  return parts;
}

Reducible reducible_unsigned(const at::Tensor& tensor, const collectives::Reduce& by,
                             at::ScalarType type) {
  const bool is_ordered = by.op == ReduceOp::kMin || by.op == ReduceOp::kMax;
  if (by.op == ReduceOp::kAverage || by.op == ReduceOp::kScaledSum) refuse(tensor, by.op);
  const bool is_copy = is_ordered || !is_plain(tensor);
  const at::Tensor own = is_copy ? tensor.clone(at::MemoryFormat::Contiguous) : tensor;
  const at::Tensor whole = own.view(type);
  if (is_ordered) turn_highest_bit(whole);
  return {.memory = whole,
          .dtype = *dtype_of(type),
          .by = by,
          .is_copy = is_copy,
          .finish = [is_ordered](const at::Tensor& result, const at::Tensor& target) {
            if (is_ordered) turn_highest_bit(result);
            copy_result(result.view(target.scalar_type()), target);
          }};
}

Reducible reducible_small_floats(const at::Tensor& tensor, const collectives::Reduce& by) {
  const at::Tensor wide = tensor.to(at::kFloat).contiguous();
  if (!kernels::is_reducible(Dtype::kF32, by.op)) refuse(tensor, by.op);
  return {.memory = wide,
          .dtype = Dtype::kF32,
          .by = by,
          .is_copy = true,
          .finish = [](const at::Tensor& result, const at::Tensor& target) {
            target.copy_(result.view(target.sizes()));
          }};
}

}  // namespace

void check_sendable(const at::Tensor& tensor, const char* operation) {
  if (tensor.device().is_cpu() && tensor.layout() == at::kStrided && !tensor.is_quantized()) return;
  throw Error(ErrorKind::kInvalidArgument,
              std::string(operation) + " of a tensor on " + tensor.device().str() + " of layout " +
                  std::to_string(static_cast<int>(tensor.layout())) +
                  "; expected a dense one on the CPU. For GPUs use the backend "
                  "\"cpu:trireme,cuda:nccl\"");
}

std::span<std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), static_cast<std::size_t>(tensor.nbytes())};
}

bool is_plain(const at::Tensor& tensor) {
  return tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg();
}

at::Tensor plain(const at::Tensor& tensor) {
  if (is_plain(tensor)) return tensor;
  return tensor.resolve_conj().resolve_neg().contiguous();
}

at::Tensor plain_like(const at::Tensor& tensor) {
  return is_plain(tensor) ? tensor : at::empty(tensor.sizes(), tensor.options());
}

Dtype label_of(const at::Tensor& tensor) {
  return dtype_of(tensor.scalar_type()).value_or(Dtype::kU8);
}

Reducible make_reducible(const at::Tensor& tensor, collectives::Reduce by, int group_size) {
  const at::ScalarType type = tensor.scalar_type();
  if (tensor.is_complex()) return reducible_parts(tensor, by, group_size);
  if (const auto whole = signed_of(type)) {
    return reducible_unsigned(tensor, by, *whole);
  }
  if (at::isFloat8Type(type)) return reducible_small_floats(tensor, by);
  const std::optional<Dtype> dtype = dtype_of(type);
  if (!dtype) refuse(tensor, by.op);
  Reducible reducible{.memory = plain(tensor), .dtype = *dtype, .by = by, .finish = copy_result};
  reducible.is_copy = reducible.memory.data_ptr() != tensor.data_ptr();
  const bool is_whole_average =
      by.op == ReduceOp::kAverage && !is_real(*dtype) && *dtype != Dtype::kBool;
  if (is_whole_average) {
    reducible.by.op = ReduceOp::kSum;
    reducible.finish = [group_size](const at::Tensor& result, const at::Tensor& target) {
      result.div_(group_size, "floor");
      copy_result(result, target);
    };
  }
  if (!kernels::is_reducible(reducible.dtype, reducible.by.op)) refuse(tensor, by.op);
  return reducible;
}

}  // namespace trireme::backend
