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
constexpr double kLeastBandwidth = 1e-6, kMostBandwidth = 1e6;  // GB/s

[[noreturn]] void fail(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, "topology: " + problem);
}

void check_parts(const Host& host, const std::string& subject) {
  for (const NumaNode& node : host.numa_nodes) {
    const auto is_wrong = [&](int core) { return core < 0 || core >= host.num_cores; };
    if (!std::ranges::none_of(node.cores, is_wrong))
      fail(subject + "a NUMA node has a core that the host has not");
  }
  for (const HostDevice& device : host.devices) {
    if (std::cmp_greater_equal(device.numa_node, host.numa_nodes.size()) && device.numa_node >= 0)
      fail(subject + "'" + device.name + "' is at a NUMA node that the host has not");
    if (!(device.gb_per_s >= 0 && device.gb_per_s <= kMostBandwidth))
      fail(subject + "gb_per_s of '" + device.name + "' must be between 0 and 1e6");
  }
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
    check_parts(hosts[h], subject);
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

void check_link(const SharedLink& link, std::size_t index, std::size_t num_ranks) {
  const std::string subject = "shared link " + std::to_string(index) + " '" + link.name + "': ";
  if (link.ranks.empty()) fail(subject + "it has no ranks");
  int last = -1;
  for (const int rank : link.ranks) {
    if (rank < 0 || std::cmp_greater_equal(rank, num_ranks)) {
      fail(subject + "there is no rank " + std::to_string(rank) + ", only " +
           std::to_string(num_ranks));
    }
    if (rank <= last) fail(subject + "its ranks must ascend, each given once");
    last = rank;
  }
  if (!(link.gb_per_s >= kLeastBandwidth && link.gb_per_s <= kMostBandwidth)) {
    fail(subject + "gb_per_s must be between 1e-6 and 1e6, got " + std::to_string(link.gb_per_s));
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

bool has_cores_to_spare(const Topology& topology) {
  return std::ranges::all_of(shared_cores(topology), [&](const SharedCores& shared) {
    int wanted = 0;
    for (const int rank : shared.ranks) wanted += topology.ranks[rank].threads + 1;
    return wanted <= shared.num_cores;
  });
}

namespace {

/// Shared links of a topology in which each rank of `copies` is there again as the one after it.
void share_with_copies(const std::map<int, int>& copies, Topology& topology) {
  for (SharedLink& link : std::exchange(topology.shared_links, {})) {
    std::vector<int> added;
    for (const int rank : link.ranks) {
      if (const auto copy = copies.find(rank); copy != copies.end()) added.push_back(copy->second);
    }
    const bool is_copied = added.size() == link.ranks.size();
    if (!is_copied) link.ranks.insert(link.ranks.end(), added.begin(), added.end());
    topology.shared_links.push_back(link);
    if (!is_copied) continue;
    link.name += " again";
    link.ranks = std::move(added);
    topology.shared_links.push_back(std::move(link));
  }
}

}  // namespace

Topology with_another_host(Topology topology) {
  const int last = topology.ranks.back().host, host = static_cast<int>(topology.hosts.size());
  topology.hosts.push_back(topology.hosts[last]);
  topology.hosts.back().name += " again";
  std::map<int, int> copies;
  for (int r = 0, end = static_cast<int>(topology.ranks.size()); r < end; ++r) {
    RankPlace rank = topology.ranks[r];
    if (rank.host != last) continue;
    rank.host = host;
    copies[r] = static_cast<int>(topology.ranks.size());
    topology.ranks.push_back(std::move(rank));
  }
  share_with_copies(copies, topology);
  return topology;
}

Topology with_another_rank(Topology topology) {
  RankPlace rank = topology.ranks.back();
  Host& host = topology.hosts[rank.host];
  host.memory_bytes += rank.memory_bytes;
  for (int& core : rank.cores) core = host.num_cores++;
  topology.ranks.push_back(std::move(rank));
  const int last = static_cast<int>(topology.ranks.size()) - 1;
  for (SharedLink& link : topology.shared_links) {
    if (link.ranks.back() == last - 1) link.ranks.push_back(last);
  }
  return topology;
}

void check(const Topology& topology) {
  if (topology.ranks.empty()) fail("it has no ranks");
  check_hosts(topology.hosts);
  for (std::size_t rank = 0; rank < topology.ranks.size(); ++rank) {
    check_place(topology.ranks[rank], static_cast<int>(rank), topology.hosts);
  }
  for (std::size_t l = 0; l < topology.shared_links.size(); ++l) {
    check_link(topology.shared_links[l], l, topology.ranks.size());
  }
}

namespace {

std::string gibibytes(std::int64_t bytes) {
  char text[40];
  std::snprintf(text, sizeof text, "%.1f GiB", static_cast<double>(bytes) / (1 << 30));
  return text;
}

/// Nothing where there is one NUMA node and no device.
std::string parts_text(const Host& host) {
  std::string text;
  const auto node_text = [&](int n) { return n < 0 ? "" : ", at NUMA node " + std::to_string(n); };
  for (std::size_t n = 0; n < host.numa_nodes.size() && host.numa_nodes.size() > 1; ++n) {
    const NumaNode& node = host.numa_nodes[n];
    text += "  NUMA node " + std::to_string(n) + " of socket " + std::to_string(node.socket) +
            ": " + gibibytes(node.memory_bytes) + ", cores";
    for (const int core : node.cores) text += " " + std::to_string(core);
    text += "\n";
  }
  for (const HostDevice& device : host.devices) {
    char speed[40] = "";
    if (device.gb_per_s > 0) std::snprintf(speed, sizeof speed, ", %g GB/s", device.gb_per_s);
    text += (device.kind == HostDeviceKind::kGpu ? "  GPU " : "  network card ") + device.name +
            speed + node_text(device.numa_node) + "\n";
  }
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

std::string link_text(const SharedLink& link) {
  char speed[40];
  std::snprintf(speed, sizeof speed, "%g GB/s", link.gb_per_s);
  const std::string messages = link.passing == Passing::kHost      ? " within hosts"
                               : link.passing == Passing::kNetwork ? " between hosts"
                                                                   : "";
  std::string text =
      "shared: '" + link.name + "', " + speed + " each way" + messages + ", of ranks";
  for (const int rank : link.ranks) text += " " + std::to_string(rank);
  return text + "\n";
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
            " cores, " + gibibytes(host.memory_bytes) + "\n" + parts_text(host);
    for (const std::size_t rank : ranks_of[h]) text += rank_text(rank, topology.ranks[rank]);
  }
  for (const SharedCores& shared : shared_cores(topology)) {
    if (shared.ranks.size() < 2) continue;
    text += "shared: " + std::to_string(shared.num_cores) + " cores by ranks";
    for (const int rank : shared.ranks) text += " " + std::to_string(rank);
    text += "\n";
  }
  for (const SharedLink& link : topology.shared_links) text += link_text(link);
  return text;
}

}  // namespace trireme::topology
