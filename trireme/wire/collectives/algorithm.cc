#include "trireme/wire/collectives/algorithm.h"

#include <array>
#include <cstddef>

#include "trireme/wire/collectives/schedule/algorithms.h"

namespace trireme::collectives {
namespace {

constexpr std::array<std::string_view, 2> kOrders = {"canonical", "any"};

}  // namespace

std::string_view to_text(Algorithm algorithm) { return entry_of(algorithm).name; }

std::optional<Algorithm> parse_algorithm(std::string_view text) {
  for (const AlgorithmEntry* entry : kAlgorithmTable) {
    if (entry->name == text) return entry->algorithm;
  }
  return std::nullopt;
}

std::string_view to_text(Order order) { return kOrders.at(static_cast<std::size_t>(order)); }

std::optional<Order> parse_order(std::string_view text) {
  for (std::size_t i = 0; i < kOrders.size(); ++i) {
    if (kOrders[i] == text) return static_cast<Order>(i);
  }
  return std::nullopt;
}

}  // namespace trireme::collectives
