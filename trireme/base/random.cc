#include "trireme/base/random.h"

#include <algorithm>

namespace trireme {
namespace {

constexpr std::uint32_t kMultiplier0 = 0xD2511F53;
constexpr std::uint32_t kMultiplier1 = 0xCD9E8D57;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9;
constexpr std::uint32_t kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;

std::uint32_t high(std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32); }
std::uint32_t low(std::uint64_t word) { return static_cast<std::uint32_t>(word); }

/// Folds one 64-bit word into a running 64-bit state.
std::uint64_t mix(std::uint64_t state, std::uint64_t word, std::uint32_t position) {
  const auto out = philox({low(word), high(word), position, 0}, {low(state), high(state)});
  return (static_cast<std::uint64_t>(out[1]) << 32) | out[0];
}

}  // namespace

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t product0 = static_cast<std::uint64_t>(kMultiplier0) * counter[0];
    const std::uint64_t product1 = static_cast<std::uint64_t>(kMultiplier1) * counter[2];
    counter = {high(product1) ^ counter[1] ^ key[0], low(product1),
               high(product0) ^ counter[3] ^ key[1], low(product0)};
    key = {key[0] + kWeyl0, key[1] + kWeyl1};
  }
  return counter;
}

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

std::uint64_t NodeStream::of_node(std::int64_t node_id) const {
  return stream_seed(seed,
                     {static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(microbatch),
                      static_cast<std::uint64_t>(node_id)});
}

}  // namespace trireme
