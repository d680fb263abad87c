#include "trireme/wire/collectives/algorithm.h"

#include <array>
#include <cstddef>

namespace trireme::collectives {
namespace {

constexpr std::array<std::string_view, kNumAlgorithms> kAlgorithms = {
    "one_shot", "two_hop", "halving_doubling", "ring", "two_level"};
constexpr std::array<std::string_view, 2> kOrders = {"canonical", "any"};

template <typename Enum, std::size_t N>
std::optional<Enum> parse_name(const std::array<std::string_view, N>& names,
                               std::string_view text) {
  for (std::size_t i = 0; i < N; ++i) {
    if (names[i] == text) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace

std::string_view to_text(Algorithm algorithm) {
  return kAlgorithms.at(static_cast<std::size_t>(algorithm));
}

std::optional<Algorithm> parse_algorithm(std::string_view text) {
  return parse_name<Algorithm>(kAlgorithms, text);
}

std::string_view to_text(Order order) { return kOrders.at(static_cast<std::size_t>(order)); }

std::optional<Order> parse_order(std::string_view text) { return parse_name<Order>(kOrders, text); }

}  // namespace trireme::collectives
