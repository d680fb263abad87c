#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace trireme::collectives {

/// How an operation moves its data (docs/algorithms.md has the steps of each). What an algorithm is
/// stands in a file of its name; schedule/algorithms.h lists them in this order. On the wire it is the
/// number: a new one comes last.
enum class Algorithm : std::uint8_t {
  kOneShot,          ///< Everybody sends everything to everybody who needs it.
  kTwoHop,           ///< Each rank owns a chunk: everybody to the owner, the owner to everybody.
  kHalvingDoubling,  ///< Pairs exchange halves at distance 1, 2, 4, ..., and back.
  kRing,             ///< From neighbour to neighbour.
  kTwoLevel,         ///< Inside the hosts, between them, inside them.
};

/// In which order the elements of the ranks are combined.
enum class Order : std::uint8_t {
  kCanonical,  ///< By THE tree (kernels/reduce/tree.h) over group ranks: the same bits always.
  kAny,        ///< As the algorithm likes: the same bits on all ranks of one call, no more.
};

inline constexpr int kNumAlgorithms = 5;

/// `one_shot`, `two_hop`, `halving_doubling`, `ring`, `two_level`.
std::string_view to_text(Algorithm algorithm);
std::optional<Algorithm> parse_algorithm(std::string_view text);

/// `canonical`, `any`.
std::string_view to_text(Order order);
std::optional<Order> parse_order(std::string_view text);

}  // namespace trireme::collectives
