#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace trireme {

/// Philox4x32-10: four random words as a pure function of a 128-bit counter and a 64-bit key.
///
/// Source   Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011, section 5.3.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key);

/// A 64-bit number that is a pure function of `seed` and `words`, each word mixed in by one Philox
/// call. Who draws, where and when does not enter: this is what makes results repeat on any layout.
std::uint64_t stream_seed(std::uint64_t seed, std::initializer_list<std::uint64_t> words);

/// As above for a name, taken as bytes; for streams that belong to a parameter.
std::uint64_t stream_seed(std::uint64_t seed, std::string_view name);

/// Stream of a random node (DESIGN contract 2): (seed, step, global microbatch, node id).
struct NodeStream {
  std::uint64_t seed;
  std::int64_t step;
  std::int64_t microbatch;

  std::uint64_t of_node(std::int64_t node_id) const;
};

}  // namespace trireme
