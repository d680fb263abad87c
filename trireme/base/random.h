#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace trireme {

/// Philox4x32-10: four random words as a pure function of a 128-bit counter and a 64-bit key.
///
/// Source   Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011, section 5.3.
constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                              std::array<std::uint32_t, 2> key) {
  constexpr int kRounds = 10;
  const auto high = [](std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32); };
  const auto low = [](std::uint64_t word) { return static_cast<std::uint32_t>(word); };
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {high(product1) ^ counter[1] ^ key[0], low(product1),
               high(product0) ^ counter[3] ^ key[1], low(product0)};
    key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
  }
  return counter;
}

/// A 64-bit number that is a pure function of `seed` and `words`, each word mixed in by one Philox
/// call. Who draws, where and when does not enter: this is what makes results repeat on any layout.
std::uint64_t stream_seed(std::uint64_t seed, std::initializer_list<std::uint64_t> words);

/// As above for a name, taken as bytes; for streams that belong to a parameter.
std::uint64_t stream_seed(std::uint64_t seed, std::string_view name);

/// Two normal numbers of two random words.
///
/// Source   Box and Muller, "A note on the generation of random normal deviates", 1958, of (word + 1/2) / 2^32.
std::array<double, 2> normal_pair(std::uint32_t first, std::uint32_t second);

/// Stream of a random node (docs/concepts/equality.md): (seed, step, global microbatch, node id).
struct NodeStream {
  std::uint64_t seed;
  std::int64_t step;
  std::int64_t microbatch;

  std::uint64_t of_node(std::int64_t node_id) const;
};

}  // namespace trireme
