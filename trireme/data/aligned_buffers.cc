#include "trireme/data/aligned_buffers.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "trireme/error.h"

namespace trireme::data {

AlignedBuffers::Lease::Lease(Lease&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)), bytes_(std::exchange(other.bytes_, {})) {}

AlignedBuffers::Lease& AlignedBuffers::Lease::operator=(Lease&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

void AlignedBuffers::Lease::reset() {
  if (pool_ != nullptr) pool_->put(bytes_);
  pool_ = nullptr;
  bytes_ = {};
}

AlignedBuffers::~AlignedBuffers() {
  for (const auto& [size, buffers] : kept_) {
    for (std::byte* buffer : buffers) std::free(buffer);
  }
}

std::size_t AlignedBuffers::size_of(std::size_t bytes) const {
  return std::bit_ceil(std::max(bytes, alignment_));
}

AlignedBuffers::Lease AlignedBuffers::get(std::size_t bytes) {
  const std::size_t size = size_of(bytes);
  if (process_.is_here()) {
    const std::scoped_lock lock(mutex_);
    if (auto& buffers = kept_[size]; !buffers.empty()) {
      std::byte* begin = buffers.back();
      buffers.pop_back();
      kept_bytes_ -= static_cast<std::int64_t>(size);
      return {*this, {begin, size}};
    }
  }
  auto* begin = static_cast<std::byte*>(std::aligned_alloc(alignment_, size));
  if (begin != nullptr) return {*this, {begin, size}};
  throw Error(ErrorKind::kResourceExhausted,
              "no memory for " + std::to_string(size) + " bytes to read records into");
}

void AlignedBuffers::put(std::span<std::byte> bytes) {
  if (!process_.is_here()) return std::free(bytes.data());
  const std::scoped_lock lock(mutex_);
  const auto size = static_cast<std::int64_t>(bytes.size());
  if (kept_bytes_ + size > max_kept_) return std::free(bytes.data());
  kept_[bytes.size()].push_back(bytes.data());
  kept_bytes_ += size;
}

}  // namespace trireme::data
