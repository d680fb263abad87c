#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "trireme/kernels/reduce/combine.h"
#include "trireme/wire/collectives/host/arena.h"
#include "trireme/wire/collectives/host/way.h"

namespace trireme::collectives {

using Bytes = std::span<std::byte>;

/// Slices of at most `slice` bytes that so many bytes make.
inline std::int64_t num_slices(std::size_t bytes, std::size_t slice) {
  return static_cast<std::int64_t>((bytes + slice - 1) / slice);
}

/// The slice of that index; empty behind the end.
template <typename T>
std::span<T> slice_of(std::span<T> bytes, std::int64_t index, std::size_t slice) {
  const std::size_t begin = std::min(bytes.size(), static_cast<std::size_t>(index) * slice);
  return bytes.subspan(begin, std::min(slice, bytes.size() - begin));
}

/// Where ranks stage what they have for each other: of each half of the arena, a slice per other
/// rank.
class SlicedStaging {
 public:
  explicit SlicedStaging(const Arena& arena) : arena_(arena) {
    constexpr std::size_t kLine = 64;
    const auto others = static_cast<std::size_t>(std::max(1, arena.num_ranks() - 1));
    slice_ = Arena::kPieceBytes / others / kLine * kLine;
  }

  std::size_t slice() const { return slice_; }  ///< Bytes.

  /// What rank `from` stages for rank `to`, another.
  Bytes place(int from, int half, int to) const {
    const auto index = static_cast<std::size_t>(to < from ? to : to - 1);
    return arena_.piece(from, half).subspan(slice_ * index, slice_);
  }

 private:
  Arena arena_;
  std::size_t slice_;
};

/// to: at least as long.
inline void copy(std::span<const std::byte> from, Bytes to) {
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
}

/// To where others read it.
inline void copy_in(std::span<const std::byte> from, Bytes to, Way way) {
  if (way == Way::kCached || from.empty()) return copy(from, to);
  kernels::copy_streaming(from.data(), to.data(), from.size());
}

/// Of an operation from which this rank takes `total` bytes: past the caches where they would not
/// hold them anyway, which spares the fetch of every line that is written.
inline void copy_out(std::span<const std::byte> from, Bytes to, std::size_t total) {
  constexpr std::size_t kBeyondCaches = std::size_t{4} << 20;
  if (total < kBeyondCaches) return copy(from, to);
  if (!from.empty()) kernels::copy_streaming(from.data(), to.data(), from.size());
}

}  // namespace trireme::collectives
