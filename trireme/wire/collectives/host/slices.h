#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

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

/// to: at least as long.
inline void copy(std::span<const std::byte> from, Bytes to) {
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
}

}  // namespace trireme::collectives
