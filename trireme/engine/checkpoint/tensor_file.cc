#include "trireme/engine/checkpoint/tensor_file.h"

#include <ATen/Functions.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "trireme/engine/record/torch_terms.h"

namespace trireme::checkpoint {

void TensorFile::add(std::string name, const at::Tensor& tensor) {
  const at::Tensor& dense = dense_.emplace_back(tensor.detach().contiguous());
  tensors_.push_back({std::move(name),
                      record::to_dtype(dense.scalar_type()),
                      dense.sizes().vec(),
                      {static_cast<const std::byte*>(dense.const_data_ptr()), dense.nbytes()}});
}

namespace {

/// New memory for a copy, in large pages: 42 MiB are copied in 11 ms then, into small ones in 37.
std::unique_ptr<std::byte, decltype(&std::free)> large_pages(std::size_t bytes) {
  constexpr std::size_t kPage = std::size_t{1} << 21;
  const std::size_t whole = (bytes + kPage - 1) / kPage * kPage;
  void* memory = std::aligned_alloc(kPage, std::max(whole, kPage));
  if (memory == nullptr) throw std::bad_alloc();
  ::madvise(memory, whole, MADV_HUGEPAGE);  // only speed depends on it
  return {static_cast<std::byte*>(memory), &std::free};
}

}  // namespace

void TensorFile::copy() {
  std::size_t bytes = 0;
  for (const safetensors::Tensor& tensor : tensors_) bytes += tensor.bytes.size();
  copies_ = large_pages(bytes);
  std::byte* next = copies_.get();
  for (safetensors::Tensor& tensor : tensors_) {
    if (!tensor.bytes.empty()) std::memcpy(next, tensor.bytes.data(), tensor.bytes.size());
    tensor.bytes = {next, tensor.bytes.size()};
    next += tensor.bytes.size();
  }
  dense_.clear();
}

safetensors::Written TensorFile::write(const std::filesystem::path& path) {
  const std::vector<at::Tensor> kept = std::exchange(dense_, {});
  return safetensors::write(path, std::exchange(tensors_, {}));
}

at::Tensor rows_of(const at::Tensor& whole, std::int64_t begin, std::int64_t end) {
  return whole.dim() == 0 ? whole : whole.narrow(0, begin, end - begin);
}

namespace {

/// All exponent bits set: NaN or infinite. In chunks, so that the loop inside has no early end.
template <typename Real, typename Bits, Bits Exponent>
bool all_finite(std::span<const Real> numbers) {
  constexpr std::size_t kChunk = 4096;
  for (std::size_t begin = 0; begin < numbers.size(); begin += kChunk) {
    Bits found = 0;
    for (const Real number : numbers.subspan(begin, std::min(kChunk, numbers.size() - begin))) {
      found |= static_cast<Bits>((std::bit_cast<Bits>(number) & Exponent) == Exponent);
    }
    if (found != 0) return false;
  }
  return true;
}

template <typename Real>
std::span<const Real> span_of(const at::Tensor& dense) {
  return {dense.const_data_ptr<Real>(), static_cast<std::size_t>(dense.numel())};
}

}  // namespace

bool is_finite(const at::Tensor& tensor) {
  if (!at::isFloatingType(tensor.scalar_type()) && !at::isComplexType(tensor.scalar_type())) {
    return true;
  }
  const at::Tensor dense = tensor.detach().contiguous();
  switch (dense.scalar_type()) {
    case at::kFloat:
      return all_finite<float, std::uint32_t, 0x7f800000U>(span_of<float>(dense));
    case at::kDouble:
      return all_finite<double, std::uint64_t, 0x7ff0000000000000ULL>(span_of<double>(dense));
    default:
      return at::isfinite(dense).all().item<bool>();
  }
}

}  // namespace trireme::checkpoint
