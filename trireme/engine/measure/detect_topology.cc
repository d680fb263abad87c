#include "trireme/engine/measure/detect_topology.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>

#include "trireme/base/json.h"
#include "trireme/error.h"
#include "trireme/plan/topology/topology_json.h"

namespace trireme::measure {

namespace {

/// Files of the kernel say that they are empty; so they are read to their end. Empty if missing.
std::string kernel_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

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

/// Limits of the process's control group and of those around it; the lowest holds.
std::vector<std::string> memory_limits() {
  constexpr std::string_view kUnified = "0::";  // of /proc/self/cgroup, version 2
  std::vector<std::string> limits = {
      kernel_file("/sys/fs/cgroup/memory/memory.limit_in_bytes")};  // version 1
  const std::string own = kernel_file("/proc/self/cgroup");
  const std::size_t begin = own.find(kUnified);
  if (begin == std::string::npos) return limits;
  std::string path = own.substr(begin + kUnified.size());
  path.resize(std::min(path.size(), path.find('\n')));
  while (true) {
    limits.push_back(kernel_file("/sys/fs/cgroup" + path + "/memory.max"));
    if (path.empty()) return limits;
    path.resize(path.find_last_of('/') == std::string::npos ? 0 : path.find_last_of('/'));
  }
}

std::optional<std::int64_t> leading_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  return number;
}

}  // namespace

namespace internal {

std::string field_of(std::string_view text, std::string_view key) {
  constexpr std::string_view kBlank = " \t";
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::size_t key_end = line.substr(0, colon).find_last_not_of(kBlank) + 1;
    const std::size_t begin = line.find_first_not_of(kBlank, colon + 1);
    if (line.substr(0, key_end) != key || begin == std::string_view::npos) continue;
    return std::string(line.substr(begin));
  }
  return "";
}

std::int64_t usable_bytes(std::string_view meminfo, std::span<const std::string> limits) {
  const auto total_kib = leading_number(field_of(meminfo, "MemTotal"));
  if (!total_kib) throw Error(ErrorKind::kIo, "/proc/meminfo does not say how much memory it has");
  std::int64_t bytes = *total_kib * 1024;
  for (const std::string& limit : limits) {
    bytes = std::min(bytes, leading_number(limit).value_or(bytes));  // `max` is no number
  }
  return bytes;
}

}  // namespace internal

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) {
    throw Error(ErrorKind::kIo, "the system does not say what this host is called");
  }
  return name.data();
}

std::string processor_name() {
  const std::string name = internal::field_of(kernel_file("/proc/cpuinfo"), "model name");
  return name.empty() ? "unknown" : name;
}

HostFacts host_facts() {
  HostFacts facts{.name = host_name(), .cores = allowed_cores()};
  const int num_configured = static_cast<int>(sysconf(_SC_NPROCESSORS_CONF));
  facts.num_cores = std::max(num_configured, facts.cores.back() + 1);
  facts.memory_bytes = internal::usable_bytes(kernel_file("/proc/meminfo"), memory_limits());
  return facts;
}

namespace {

/// This rank alone on its host: what the ranks tell each other.
topology::Topology own_place(const DetectOptions& options) {
  HostFacts facts = host_facts();
  const topology::Host host{facts.name, facts.num_cores, facts.memory_bytes};
  const std::int64_t memory_bytes =
      options.device_memory_bytes > 0 ? options.device_memory_bytes : facts.memory_bytes;
  return {{host}, {{0, std::move(facts.cores), memory_bytes}}};
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
