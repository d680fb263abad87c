#include "benchmarks/wire/pattern.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "trireme/error.h"

namespace trireme::bench {
namespace {

std::uint64_t mix(int rank, std::int64_t index) {
  std::uint64_t hash = static_cast<std::uint64_t>(index + 1) * 0x9E3779B97F4A7C15ULL +
                       static_cast<std::uint64_t>(rank + 1) * 0xC2B2AE3D27D4EB4FULL;
  hash = (hash ^ (hash >> 29)) * 0xBF58476D1CE4E5B9ULL;
  return hash ^ (hash >> 32);
}

double whole(int rank, std::int64_t index) { return static_cast<double>(mix(rank, index) & 7); }

double real(int rank, std::int64_t index) {
  const std::uint64_t hash = mix(rank, index);
  const double fraction = static_cast<double>(hash >> 40) / (1 << 24) - 0.5;
  return fraction * static_cast<double>(1 << (hash & 15));
}

[[noreturn]] void refuse(Dtype dtype) {
  throw Error(ErrorKind::kInvalidArgument,
              "the benchmark knows f32 and f64, not " + std::string(to_text(dtype)));
}

template <typename T>
void fill_as(std::span<std::byte> buffer, Pattern pattern, int rank) {
  auto* values = reinterpret_cast<T*>(buffer.data());
  const auto count = static_cast<std::int64_t>(buffer.size() / sizeof(T));
  for (std::int64_t i = 0; i < count; ++i) {
    values[i] = static_cast<T>(pattern == Pattern::kWhole ? whole(rank, i) : real(rank, i));
  }
}

/// Bits are compared: -0 is not 0, and a NaN is no number.
template <typename T>
std::int64_t count_wrong_as(const Checker& checker, std::span<const std::byte> result,
                            std::int64_t first) {
  const auto* values = reinterpret_cast<const T*>(result.data());
  const auto count = static_cast<std::int64_t>(result.size() / sizeof(T));
  const bool is_part = checker.what.operation == Collective::kReduceScatter;
  std::int64_t wrong = is_part ? 0 : std::max<std::int64_t>(0, checker.what.count() - count);
  for (std::int64_t i = 0; i < count; ++i) {
    const T expected = static_cast<T>(checker.expected(first + i));
    wrong += std::memcmp(&expected, values + i, sizeof(T)) == 0 ? 0 : 1;
  }
  return wrong;
}

}  // namespace

void fill(std::span<std::byte> buffer, Dtype dtype, Pattern pattern, int rank) {
  if (dtype == Dtype::kF32) return fill_as<float>(buffer, pattern, rank);
  if (dtype == Dtype::kF64) return fill_as<double>(buffer, pattern, rank);
  refuse(dtype);
}

void fill_with_wrong(std::span<std::byte> buffer) {
  if (!buffer.empty()) std::memset(buffer.data(), 0xFF, buffer.size());
}

double Checker::expected(std::int64_t index) const {
  const std::int64_t part = what.count() / num_ranks;
  switch (what.operation) {
    case Collective::kAllGather:
      return whole(static_cast<int>(index / part), index % part);
    case Collective::kAllToAll:
      return whole(static_cast<int>(index / part), rank * part + index % part);
    case Collective::kBroadcast:
      return whole(0, index);
    default: {
      double sum = 0;
      for (int other = 0; other < num_ranks; ++other) sum += whole(other, index);
      return sum;
    }
  }
}

std::int64_t Checker::count_wrong(std::span<const std::byte> result, std::int64_t first) const {
  if (what.dtype == Dtype::kF32) return count_wrong_as<float>(*this, result, first);
  if (what.dtype == Dtype::kF64) return count_wrong_as<double>(*this, result, first);
  refuse(what.dtype);
}

}  // namespace trireme::bench
