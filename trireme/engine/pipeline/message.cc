#include "trireme/engine/pipeline/message.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include "trireme/engine/program/boundary_copy.h"
#include "trireme/engine/record/torch_terms.h"
#include "trireme/error.h"

namespace trireme::pipeline {
namespace {

constexpr std::uint32_t kMagic = 0x54524d31;  // "TRM1"
constexpr int kMaxDims = 16;

struct Header {
  std::uint32_t magic = kMagic;
  std::uint8_t is_defined = 0;
  std::uint8_t dtype = 0;
  std::uint16_t num_dims = 0;
  std::array<std::int64_t, kMaxDims> sizes{};
  std::array<std::int64_t, kMaxDims> strides{};
};
static_assert(sizeof(Header) <= kMessageHeaderBytes);

std::byte* bytes_of(const at::Tensor& message) {
  return static_cast<std::byte*>(message.mutable_data_ptr());
}

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorKind::kCorruptData, "a message between stages " + what);
}

Header describe(const at::Tensor& tensor) {
  if (tensor.dim() > kMaxDims || !tensor.device().is_cpu()) {
    throw Error(ErrorKind::kInvalidArgument,
                "a value between stages has " + std::to_string(tensor.dim()) +
                    " dimensions on device " + tensor.device().str() + "; expected at most " +
                    std::to_string(kMaxDims) + " on the CPU");
  }
  Header header{.is_defined = 1,
                .dtype = static_cast<std::uint8_t>(record::to_dtype(tensor.scalar_type())),
                .num_dims = static_cast<std::uint16_t>(tensor.dim())};
  for (std::int64_t d = 0; d < tensor.dim(); ++d) {
    header.sizes[d] = tensor.size(d);
    header.strides[d] = tensor.stride(d);
  }
  return header;
}

Header read_header(const at::Tensor& message) {
  Header header;
  if (message.nbytes() < kMessageHeaderBytes) refuse("is shorter than its header");
  std::memcpy(&header, bytes_of(message), sizeof header);
  if (header.magic != kMagic) refuse("does not begin as one");
  if (header.num_dims > kMaxDims) refuse("has too many dimensions");
  if (header.dtype > static_cast<std::uint8_t>(Dtype::kC128)) refuse("has an unknown dtype");
  return header;
}

/// As program::span_elements, of numbers that may be anything. limit   no span is larger.
std::int64_t span_of(at::IntArrayRef sizes, at::IntArrayRef strides, std::int64_t limit) {
  std::int64_t span = 1;
  std::int64_t num_elements = 1;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] < 0 || strides[d] < 0) refuse("has a negative size");
  }
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return 0;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    std::int64_t reach = 0;
    if (__builtin_mul_overflow(sizes[d] - 1, strides[d], &reach) || reach > limit - span ||
        __builtin_mul_overflow(num_elements, sizes[d], &num_elements)) {
      refuse("has sizes that it is too short for");
    }
    span += reach;
  }
  return span;
}

}  // namespace

at::Tensor make_message(std::size_t bytes) {
  return at::empty({static_cast<std::int64_t>(bytes)}, at::TensorOptions().dtype(at::kByte));
}

at::Tensor pack(const at::Tensor& tensor) {
  const at::NoGradGuard no_grad;
  Header header;
  if (!tensor.defined()) {
    const at::Tensor message = make_message(kMessageHeaderBytes);
    std::memcpy(bytes_of(message), &header, sizeof header);
    return message;
  }
  const at::Tensor strided = tensor.layout() == at::kStrided ? tensor : tensor.to_dense();
  header = describe(strided);
  const std::size_t elements = program::span_elements(strided);
  const at::Tensor message = make_message(kMessageHeaderBytes + elements * strided.element_size());
  std::memcpy(bytes_of(message), &header, sizeof header);
  program::copy_span(strided,
                     at::from_blob(bytes_of(message) + kMessageHeaderBytes,
                                   {static_cast<std::int64_t>(elements)}, strided.options()));
  return message;
}

at::Tensor unpack(const at::Tensor& message) {
  const Header header = read_header(message);
  if (header.is_defined == 0) return {};
  const at::IntArrayRef sizes(header.sizes.data(), header.num_dims);
  const at::IntArrayRef strides(header.strides.data(), header.num_dims);
  const at::ScalarType type = record::to_scalar_type(static_cast<Dtype>(header.dtype));
  const std::int64_t span = span_of(sizes, strides, static_cast<std::int64_t>(message.nbytes()));
  const std::size_t expected =
      kMessageHeaderBytes + static_cast<std::size_t>(span) * c10::elementSize(type);
  if (message.nbytes() != expected) {
    refuse("has " + std::to_string(message.nbytes()) + " bytes, expected " +
           std::to_string(expected));
  }
  return at::from_blob(
      bytes_of(message) + kMessageHeaderBytes, sizes, strides, [message](void*) {},
      at::TensorOptions().dtype(type));
}

}  // namespace trireme::pipeline
