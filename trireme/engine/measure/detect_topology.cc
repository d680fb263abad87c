#include "trireme/engine/measure/detect_topology.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>

#include "trireme/base/json.h"
#include "trireme/base/kernel_files.h"
#include "trireme/engine/measure/host_parts.h"
#include "trireme/error.h"
#include "trireme/plan/topology/topology_json.h"

namespace trireme::measure {

namespace {

std::vector<int> allowed_cores() {
  constexpr int kMaxCores = 1 << 14;
  const auto free_set = [](cpu_set_t* set) { CPU_FREE(set); };
  const std::unique_ptr<cpu_set_t, decltype(free_set)> set(CPU_ALLOC(kMaxCores), free_set);
  const std::size_t size = CPU_ALLOC_SIZE(kMaxCores);
  if (set == nullptr || sched_getaffinity(0, size, set.get()) != 0) {
    throw Error(ErrorKind::kIo, "the system does not say which cores this process may use");
  }
  std::vector<int> cores;
  for (int core = 0; core < kMaxCores; ++core) {
    if (CPU_ISSET_S(core, size, set.get())) cores.push_back(core);
  }
  return cores;
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) {
    throw Error(ErrorKind::kIo, "the system does not say what this host is called");
  }
  return name.data();
}

std::string processor_name() {
  const std::string name = field_of(kernel_file("/proc/cpuinfo"), "model name");
  return name.empty() ? "unknown" : name;
}

HostFacts host_facts() {
  HostFacts facts{.name = host_name(), .cores = allowed_cores()};
  const int num_configured = static_cast<int>(sysconf(_SC_NPROCESSORS_CONF));
  facts.num_cores = std::max(num_configured, facts.cores.back() + 1);
  facts.memory_bytes = usable_memory_bytes();
  return facts;
}

namespace {

/// This rank alone on its host: what the ranks tell each other.
topology::Topology own_place(const DetectOptions& options) {
  HostFacts facts = host_facts();
  topology::Host host{facts.name, facts.num_cores, facts.memory_bytes};
  if (options.with_parts) add_parts(host_parts(), host);
  const std::int64_t memory_bytes =
      options.device_memory_bytes > 0 ? options.device_memory_bytes : facts.memory_bytes;
  return {{host}, {{0, std::move(facts.cores), memory_bytes, options.threads, options.speed}}};
}

/// Adds the one rank of `place`.
void add(topology::Topology place, topology::Topology& all) {
  topology::RankPlace rank = std::move(place.ranks.at(0));
  const topology::Host& host = place.hosts.at(0);
  const auto known =
      std::find_if(all.hosts.begin(), all.hosts.end(),
                   [&](const topology::Host& other) { return other.name == host.name; });
  rank.host = static_cast<int>(known - all.hosts.begin());
  if (known == all.hosts.end()) all.hosts.push_back(host);
  all.ranks.push_back(std::move(rank));
}

/// Each rank gets an equal part of its host's memory.
void share_memory(topology::Topology& topology) {
  std::vector<std::int64_t> num_ranks(topology.hosts.size());
  for (const topology::RankPlace& rank : topology.ranks) ++num_ranks[rank.host];
  for (topology::RankPlace& rank : topology.ranks) rank.memory_bytes /= num_ranks[rank.host];
}

}  // namespace

topology::Topology detect_topology(const BusyRanks& ranks, const DetectOptions& options) {
  topology::Topology result;
  for (const std::string& text : ranks.gather(compact_text(to_json(own_place(options))))) {
    const Json json = parse_json(text, "place of a rank");
    add(topology::topology_from_json(json), result);
  }
  if (options.device_memory_bytes <= 0) share_memory(result);
  topology::check(result);
  return result;
}

}  // namespace trireme::measure
