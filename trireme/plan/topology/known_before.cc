#include "trireme/plan/topology/known_before.h"

#include <algorithm>
#include <cstddef>

#include "trireme/plan/topology/topology_json.h"

namespace trireme::topology {

bool are_same_places(const Topology& a, const Topology& b) {
  return std::ranges::equal(a.hosts, b.hosts, {}, &Host::name, &Host::name) &&
         std::ranges::equal(a.ranks, b.ranks, [](const RankPlace& x, const RankPlace& y) {
           return x.host == y.host && x.threads == y.threads;
         });
}

Topology with_speeds_and_own_links_of(const Topology& before, Topology found) {
  if (!are_same_places(before, found)) return found;
  for (std::size_t r = 0; r < found.ranks.size(); ++r) found.ranks[r].speed = before.ranks[r].speed;
  for (const SharedLink& link : before.shared_links) {
    const bool is_found = std::ranges::find(found.shared_links, link.name, &SharedLink::name) !=
                          found.shared_links.end();
    if (!is_found) found.shared_links.push_back(link);
  }
  return found;
}

Topology with_links_and_parts_of(const Topology& before, Topology found) {
  if (!are_same_places(before, found)) return found;
  found.shared_links = before.shared_links;
  for (std::size_t h = 0; h < found.hosts.size(); ++h) {
    found.hosts[h].numa_nodes = before.hosts[h].numa_nodes;
    found.hosts[h].devices = before.hosts[h].devices;
    found.hosts[h].num_cores = std::max(found.hosts[h].num_cores, before.hosts[h].num_cores);
  }
  return found;
}

Topology load_if_any(const std::filesystem::path& path) {
  return std::filesystem::exists(path) ? load(path) : Topology();
}

}  // namespace trireme::topology
