#include "trireme/data/order.h"

#include <algorithm>
#include <bit>
#include <string>

#include "trireme/base/random.h"
#include "trireme/error.h"

namespace trireme::data {
namespace {

constexpr int kRounds = 8;
constexpr int kMinHalfBits = 3;  // tiny domains would have few permutations
constexpr std::int64_t kMaxSamples = std::int64_t{1} << 62;

std::uint32_t high(std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32); }
std::uint32_t low(std::uint64_t word) { return static_cast<std::uint32_t>(word); }

}  // namespace

SampleOrder::SampleOrder(std::int64_t num_samples, std::uint64_t seed, OrderKind kind)
    : num_samples_(num_samples), seed_(seed), kind_(kind), half_bits_(kMinHalfBits) {
  if (num_samples < 1 || num_samples > kMaxSamples) {
    throw Error(ErrorKind::kInvalidArgument,
                "a sample order needs 1 to 2^62 samples, got " + std::to_string(num_samples));
  }
  const int bits = std::bit_width(static_cast<std::uint64_t>(num_samples - 1));
  half_bits_ = std::max(kMinHalfBits, (bits + 1) / 2);
}

std::int64_t SampleOrder::sample_at(std::int64_t global_index) const {
  if (global_index < 0) {
    throw Error(ErrorKind::kInvalidArgument,
                "a place in the data is not negative, got " + std::to_string(global_index));
  }
  const std::int64_t epoch = global_index / num_samples_;
  const std::int64_t position = global_index % num_samples_;
  if (kind_ == OrderKind::kSequential) return position;
  const std::uint64_t key = stream_seed(seed_, {static_cast<std::uint64_t>(epoch)});
  const auto end = static_cast<std::uint64_t>(num_samples_);
  // Following the permutation from a number below `end` leads back below it at the latest there.
  auto x = static_cast<std::uint64_t>(position);
  do {
    x = permute(x, key);
  } while (x >= end);
  return static_cast<std::int64_t>(x);
}

std::uint64_t SampleOrder::permute(std::uint64_t x, std::uint64_t key) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = x >> half_bits_;
  std::uint64_t right = x & mask;
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    const auto words = philox({low(right), high(right), round, 0}, {low(key), high(key)});
    const std::uint64_t next = (left ^ words[0]) & mask;
    left = right;
    right = next;
  }
  return left << half_bits_ | right;
}

}  // namespace trireme::data
