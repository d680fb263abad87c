#include "trireme/plan/topology/topology.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "trireme/error.h"

namespace trireme::topology {
namespace {

constexpr double kMostSpeed = 1000;  // And one by it the least: others are typing errors.

[[noreturn]] void fail(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, "topology: " + problem);
}

void check_hosts(const std::vector<Host>& hosts) {
  std::set<std::string> names;
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    const std::string subject = "host " + std::to_string(h) + " '" + hosts[h].name + "': ";
    if (!names.insert(hosts[h].name).second) fail(subject + "its name is taken");
    if (hosts[h].num_cores < 1) {
      fail(subject + "num_cores must be at least 1, got " + std::to_string(hosts[h].num_cores));
    }
    if (hosts[h].memory_bytes < 1) {
      fail(subject + "memory_bytes must be at least 1, got " +
           std::to_string(hosts[h].memory_bytes));
    }
  }
}

void check_place(const RankPlace& place, int rank, const std::vector<Host>& hosts) {
  const std::string subject = "rank " + std::to_string(rank) + ": ";
  if (place.host < 0 || static_cast<std::size_t>(place.host) >= hosts.size()) {
    fail(subject + "there is no host " + std::to_string(place.host) + ", only " +
         std::to_string(hosts.size()));
  }
  const Host& host = hosts[place.host];
  if (place.cores.empty()) fail(subject + "it has no cores on '" + host.name + "'");
  int last = -1;
  for (const int core : place.cores) {
    if (core < 0 || core >= host.num_cores) {
      fail(subject + "'" + host.name + "' has no core " + std::to_string(core) + ", only " +
           std::to_string(host.num_cores));
    }
    if (core <= last) fail(subject + "its cores must ascend, each given once");
    last = core;
  }
  if (place.memory_bytes < 1) {
    fail(subject + "memory_bytes must be at least 1, got " + std::to_string(place.memory_bytes));
  }
  if (place.threads < 1) {
    fail(subject + "threads must be at least 1, got " + std::to_string(place.threads));
  }
  if (!(place.speed >= 1 / kMostSpeed && place.speed <= kMostSpeed)) {
    fail(subject + "speed must be between 0.001 and 1000, got " + std::to_string(place.speed) +
         "; 1 is as fast as the rank that was profiled");
  }
}

/// Of those with most threads.
double num_at_full_speed(const SharedCores& shared, const Topology& topology) {
  int threads = 1;
  for (const int rank : shared.ranks) threads = std::max(threads, topology.ranks[rank].threads);
  return std::max(1.0, static_cast<double>(shared.num_cores) / threads);
}

}  // namespace

std::vector<SharedCores> shared_cores(const Topology& topology) {
  const int num_ranks = static_cast<int>(topology.ranks.size());
  std::vector<int> above(num_ranks);  // A lower rank of the same component; itself where lowest.
  std::iota(above.begin(), above.end(), 0);
  const auto root = [&above](int rank) {
    while (above[rank] != rank) rank = above[rank] = above[above[rank]];
    return rank;
  };
  std::map<std::pair<int, int>, int> first_user;  // By host and core.
  for (int rank = 0; rank < num_ranks; ++rank) {
    const RankPlace& place = topology.ranks[rank];
    for (const int core : place.cores) {
      const int user = first_user.try_emplace({place.host, core}, rank).first->second;
      const int a = root(user), b = root(rank);
      above[std::max(a, b)] = std::min(a, b);
    }
  }
  std::map<int, SharedCores> by_root;
  for (int rank = 0; rank < num_ranks; ++rank) by_root[root(rank)].ranks.push_back(rank);
  for (const auto& [place, user] : first_user) ++by_root[root(user)].num_cores;
  std::vector<SharedCores> result;
  for (auto& [first, shared] : by_root) {
    shared.num_at_full_speed = num_at_full_speed(shared, topology);
    result.push_back(std::move(shared));
  }
  return result;
}

Topology with_another_host(Topology topology) {
  const int last = topology.ranks.back().host, host = static_cast<int>(topology.hosts.size());
  topology.hosts.push_back(topology.hosts[last]);
  topology.hosts.back().name += " again";
  for (RankPlace rank : std::vector(topology.ranks)) {
    if (rank.host != last) continue;
    rank.host = host;
    topology.ranks.push_back(std::move(rank));
  }
  return topology;
}

Topology with_another_rank(Topology topology) {
  RankPlace rank = topology.ranks.back();
  Host& host = topology.hosts[rank.host];
  host.memory_bytes += rank.memory_bytes;
  for (int& core : rank.cores) core = host.num_cores++;
  topology.ranks.push_back(std::move(rank));
  return topology;
}

void check(const Topology& topology) {
  if (topology.ranks.empty()) fail("it has no ranks");
  check_hosts(topology.hosts);
  for (std::size_t rank = 0; rank < topology.ranks.size(); ++rank) {
    check_place(topology.ranks[rank], static_cast<int>(rank), topology.hosts);
  }
}

namespace {

std::string gibibytes(std::int64_t bytes) {
  char text[40];
  std::snprintf(text, sizeof text, "%.1f GiB", static_cast<double>(bytes) / (1 << 30));
  return text;
}

std::string rank_text(std::size_t rank, const RankPlace& place) {
  std::string cores;
  for (const int core : place.cores) cores += " " + std::to_string(core);
  const std::string threads =
      place.threads == 1 ? "" : ", " + std::to_string(place.threads) + " threads";
  char speed[40] = "";
  if (place.speed != 1) std::snprintf(speed, sizeof speed, ", speed %g", place.speed);
  return "  rank " + std::to_string(rank) + ": cores" + cores + threads + speed + ", " +
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
