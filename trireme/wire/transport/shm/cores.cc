#include "trireme/wire/transport/shm/cores.h"

#include <algorithm>
#include <bit>
#include <filesystem>
#include <fstream>
#include <string>

#include "trireme/wire/transport/thread.h"

namespace trireme::transport {
namespace {

/// In percent of a core's time; 0 where the group has no limit or tells none.
std::uint32_t quota_of_group(const std::filesystem::path& group) {
  std::string quota;
  double period = 0;
  std::ifstream(group / "cpu.max") >> quota >> period;
  if (quota.empty() || quota == "max" || period <= 0) return 0;
  return static_cast<std::uint32_t>(std::max(1.0, 100 * std::stod(quota) / period));
}

/// The least of this process's group and those above it. Inside a container it sees its own as the
/// root.
std::uint32_t least_quota() {
  const std::filesystem::path root = "/sys/fs/cgroup";
  std::string line, path = "/";
  for (std::ifstream file("/proc/self/cgroup"); std::getline(file, line);) {
    if (line.starts_with("0::/")) path = line.substr(3);
  }
  std::uint32_t least = 0;
  for (std::filesystem::path group = path.substr(1); true; group = group.parent_path()) {
    const std::uint32_t quota = quota_of_group(root / group);
    if (quota != 0) least = least == 0 ? quota : std::min(least, quota);
    if (group.empty()) return least;
  }
}

int count(const Cores& cores) {
  int sum = 0;
  for (const std::uint64_t bits : cores.allowed) sum += std::popcount(bits);
  return sum;
}

}  // namespace

Cores own_cores() {
  Cores cores{.quota_percent = least_quota()};
  for (const int core : allowed_cores()) {
    if (core < Cores::kMost) cores.allowed[core / 64] |= std::uint64_t{1} << (core % 64);
  }
  return cores;
}

Patience patience_for(std::span<const Cores> ranks, int ranks_of_host) {
  Cores all;
  int sum = 0;
  std::uint32_t quota = 0;
  for (const Cores& cores : ranks) {
    sum += count(cores);
    for (std::size_t i = 0; i < all.allowed.size(); ++i) all.allowed[i] |= cores.allowed[i];
    const std::uint32_t own = cores.quota_percent;
    if (own != 0) quota = quota == 0 ? own : std::min(quota, own);
  }
  // Cores of their own, which no other rank of the host has either, or enough for everybody.
  const bool is_apart = sum == count(all) && std::ssize(ranks) > 1;
  const bool has_cores = is_apart || count(all) >= ranks_of_host;
  const bool has_time = quota == 0 || quota >= 100 * static_cast<std::uint32_t>(ranks_of_host);
  if (has_cores && has_time) return {};
  return {.spin = std::chrono::microseconds(0)};
}

}  // namespace trireme::transport
