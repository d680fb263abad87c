#include "trireme/plan/partition/cut_places.h"

#include <algorithm>
#include <iterator>

#include "trireme/plan/graph/cuts.h"

namespace trireme::partition {

CutPlaces::CutPlaces(const graph::Graph& planned) : allowed_(graph::allowed_cuts(planned)) {
  for (int c = 1; c + 1 < static_cast<int>(allowed_.size()); ++c) {
    if (allowed_[c]) places_.push_back(c);
  }
}

double CutPlaces::num_partitions(int num_stages) const {
  double count = 1;
  for (int k = 1; k < num_stages; ++k) {
    count *= (static_cast<double>(places_.size()) - k + 1) / k;
  }
  return std::max(count, 0.0);
}

void CutPlaces::for_each_partition(int num_stages,
                                   const std::function<void(const Cuts&)>& visit) const {
  Cuts cuts;
  const auto add = [&](const auto& self, std::size_t place) -> void {
    const std::size_t num_left = static_cast<std::size_t>(num_stages) - 1 - cuts.size();
    if (num_left == 0) return visit(cuts);
    for (; place + num_left <= places_.size(); ++place) {
      cuts.push_back(places_[place]);
      self(self, place + 1);
      cuts.pop_back();
    }
  };
  add(add, 0);
}

std::optional<CutPlaces::Cuts> CutPlaces::moved(Cuts cuts, const CutMove& move) const {
  for (std::size_t c = move.first; c <= move.last; ++c) {
    const auto place = std::ranges::lower_bound(places_, cuts[c]) - places_.begin() + move.distance;
    if (place < 0 || place >= std::ssize(places_)) return std::nullopt;
    cuts[c] = places_[place];
  }
  const bool ascends = (move.first == 0 || cuts[move.first - 1] < cuts[move.first]) &&
                       (move.last + 1 == cuts.size() || cuts[move.last] < cuts[move.last + 1]);
  if (!ascends) return std::nullopt;
  return cuts;
}

}  // namespace trireme::partition
