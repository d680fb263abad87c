#include "trireme/plan/topology/show.h"

#include <cstdio>

namespace trireme::topology {
namespace {

std::string gibibytes(std::int64_t bytes) {
  char text[40];
  std::snprintf(text, sizeof text, "%.1f GiB", static_cast<double>(bytes) / (1 << 30));
  return text;
}

std::string rank_text(std::size_t rank, const RankPlace& place) {
  std::string cores;
  for (const int core : place.cores) cores += " " + std::to_string(core);
  return "  rank " + std::to_string(rank) + ": cores" + cores + ", " +
         gibibytes(place.memory_bytes) + "\n";
}

}  // namespace

std::string show(const Topology& topology) {
  std::string text;
  std::vector<std::vector<std::size_t>> ranks_of(topology.hosts.size());
  for (std::size_t rank = 0; rank < topology.ranks.size(); ++rank) {
    ranks_of[topology.ranks[rank].host].push_back(rank);
  }
  for (std::size_t h = 0; h < topology.hosts.size(); ++h) {
    const Host& host = topology.hosts[h];
    text += "host " + std::to_string(h) + ": " + host.name + ", " + std::to_string(host.num_cores) +
            " cores, " + gibibytes(host.memory_bytes) + "\n";
    for (const std::size_t rank : ranks_of[h]) text += rank_text(rank, topology.ranks[rank]);
  }
  for (const SharedCores& shared : shared_cores(topology)) {
    if (shared.ranks.size() < 2) continue;
    text += "shared: " + std::to_string(shared.num_cores) + " cores by ranks";
    for (const int rank : shared.ranks) text += " " + std::to_string(rank);
    text += "\n";
  }
  return text;
}

}  // namespace trireme::topology
