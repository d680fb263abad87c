#include "trireme/session/detected_topology.h"

#include <memory>
#include <vector>

#include "trireme/engine/measure/card_measure.h"
#include "trireme/wire/collectives/world.h"

namespace trireme::session {
namespace {

void add_cards(const std::vector<double>& gb_per_s, topology::Topology& topology) {
  for (std::size_t h = 0; h < gb_per_s.size(); ++h) {
    topology::SharedLink link{.name = "network of " + topology.hosts[h].name,
                              .ranks = {},
                              .gb_per_s = gb_per_s[h],
                              .passing = topology::Passing::kNetwork};
    for (int r = 0; r < static_cast<int>(topology.ranks.size()); ++r) {
      if (topology.ranks[r].host == static_cast<int>(h)) link.ranks.push_back(r);
    }
    topology.shared_links.push_back(std::move(link));
  }
}

}  // namespace

topology::Topology detected_topology(World& world, const measure::DetectOptions& options) {
  measure::DetectOptions wanted = options;
  wanted.with_parts = true;
  if (world.size() == 1) return measure::detect_topology(measure::BusyRanks(), wanted);
  const collectives::World& connected = world.value();
  const std::unique_ptr<collectives::Group> group =
      collectives::make_world_group(connected, "topology");
  const measure::BusyRanks ranks(*group, connected.watch);
  topology::Topology topology = measure::detect_topology(ranks, wanted);
  add_cards(measure::measure_cards(connected.endpoint, ranks, topology), topology);
  topology::check(topology);
  return topology;
}

}  // namespace trireme::session
