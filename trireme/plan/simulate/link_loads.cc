#include "trireme/plan/simulate/link_loads.h"

#include <algorithm>
#include <map>

#include "trireme/plan/simulate/prices.h"

namespace trireme::simulate {
namespace {

using topology::SharedLink;

bool is_behind(const SharedLink& link, int rank) {
  return std::ranges::binary_search(link.ranks, rank);
}

/// Pairs of a group with one rank behind the link and the other not.
struct Pairs {
  double of_a_host = 0;  ///< Both on one host.
  double of_hosts = 0;
};

Pairs pairs_over(const SharedLink& link, const std::vector<int>& ranks,
                 const topology::Topology& topology) {
  struct Host {
    double ranks = 0, behind = 0;
  };
  std::map<int, Host> hosts;
  Host all;
  for (const int rank : ranks) {
    Host& host = hosts[topology.ranks[rank].host];
    const double behind = is_behind(link, rank) ? 1 : 0;
    host.ranks += 1, host.behind += behind;
    all.ranks += 1, all.behind += behind;
  }
  Pairs pairs;
  for (const auto& [index, host] : hosts)
    pairs.of_a_host += host.behind * (host.ranks - host.behind);
  pairs.of_hosts = all.behind * (all.ranks - all.behind) - pairs.of_a_host;
  return pairs;
}

/// Of the bytes between each two ranks of a group: what passes the link each way.
double group_part(const SharedLink& link, const std::vector<int>& ranks,
                  const topology::Topology& topology) {
  const Pairs pairs = pairs_over(link, ranks, topology);
  const SumGroup group = sum_group(topology, ranks);
  const double each = group.ranks_per_host;
  const double hosts = each > 1 ? group.num_ranks / each : 1;
  return (link.passes(true) ? pairs.of_a_host * hosts : 0) +
         (link.passes(false) ? pairs.of_hosts / each : 0);
}

}  // namespace

LinkLoads link_loads(const schedule::StepProgram& program, const topology::Topology& topology) {
  LinkLoads loads;
  loads.channels.resize(program.channels.size());
  loads.groups.resize(program.groups.size());
  for (const SharedLink& link : topology.shared_links) {
    const int out = static_cast<int>(loads.bytes_per_us.size()), in = out + 1;
    constexpr double kBytesPerUs = 1000;  // Of a GB/s.
    loads.bytes_per_us.insert(loads.bytes_per_us.end(), 2, link.gb_per_s * kBytesPerUs);
    for (std::size_t c = 0; c < program.channels.size(); ++c) {
      const int from = program.channels[c].from_rank, to = program.channels[c].to_rank;
      const bool on_host = topology.ranks[from].host == topology.ranks[to].host;
      if (!link.passes(on_host) || is_behind(link, from) == is_behind(link, to)) continue;
      loads.channels[c].push_back({is_behind(link, from) ? out : in, 1});
    }
    for (std::size_t g = 0; g < program.groups.size(); ++g) {
      const double part = group_part(link, program.groups[g].ranks, topology);
      if (part > 0) loads.groups[g].insert(loads.groups[g].end(), {{out, part}, {in, part}});
    }
  }
  return loads;
}

}  // namespace trireme::simulate
