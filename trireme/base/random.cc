#include "trireme/base/random.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace trireme {
namespace {

std::uint32_t high(std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32); }
std::uint32_t low(std::uint64_t word) { return static_cast<std::uint32_t>(word); }

/// Folds one 64-bit word into a running 64-bit state.
std::uint64_t mix(std::uint64_t state, std::uint64_t word, std::uint32_t position) {
  const auto out = philox({low(word), high(word), position, 0}, {low(state), high(state)});
  return (static_cast<std::uint64_t>(out[1]) << 32) | out[0];
}

}  // namespace

std::uint64_t stream_seed(std::uint64_t seed, std::initializer_list<std::uint64_t> words) {
  std::uint32_t position = 0;
  for (std::uint64_t word : words) seed = mix(seed, word, position++);
  return seed;
}

std::uint64_t stream_seed(std::uint64_t seed, std::string_view name) {
  std::uint32_t position = 0;
  for (std::size_t start = 0; start < name.size(); start += 8) {
    std::uint64_t word = 0;
    const std::size_t end = std::min(name.size(), start + 8);
    for (std::size_t i = start; i < end; ++i) {
      word |= static_cast<std::uint64_t>(static_cast<unsigned char>(name[i])) << (8 * (i - start));
    }
    seed = mix(seed, word, position++);
  }
  return mix(seed, name.size(), position);
}

std::array<double, 2> normal_pair(std::uint32_t first, std::uint32_t second) {
  const auto uniform = [](std::uint32_t word) { return (word + 0.5) / 4294967296.0; };
  const double radius = std::sqrt(-2 * std::log(uniform(first)));
  const double angle = 2 * std::numbers::pi * uniform(second);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

std::uint64_t NodeStream::of_node(std::int64_t node_id) const {
  return stream_seed(seed,
                     {static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(microbatch),
                      static_cast<std::uint64_t>(node_id)});
}

}  // namespace trireme
