#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "trireme/plan/graph/graph.h"

namespace trireme::partition {

/// Cuts `first` to `last`, by so many allowed places.
struct CutMove {
  std::size_t first = 0;
  std::size_t last = 0;
  std::ptrdiff_t distance = 0;
};

/// Where a graph may be cut, and the ways to do so.
class CutPlaces {
 public:
  using Cuts = std::vector<int>;

  explicit CutPlaces(const graph::Graph& planned);

  /// By position, as graph::allowed_cuts has it.
  const std::vector<bool>& allowed() const { return allowed_; }

  /// Ascending; without the ends of the graph.
  const std::vector<int>& all() const { return places_; }

  /// Ways to cut the graph into so many stages. A real number, since there may be very many.
  double num_partitions(int num_stages) const;

  /// Calls `visit` with each of them, in lexicographic order.
  void for_each_partition(int num_stages, const std::function<void(const Cuts&)>& visit) const;

  /// The cuts after the move; nothing where they would meet others or leave the graph.
  std::optional<Cuts> moved(Cuts cuts, const CutMove& move) const;

 private:
  std::vector<bool> allowed_;
  std::vector<int> places_;
};

}  // namespace trireme::partition
