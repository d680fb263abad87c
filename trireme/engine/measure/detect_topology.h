#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/engine/measure/measurement.h"
#include "trireme/plan/topology/topology.h"

namespace trireme::measure {

/// What this process may use of the machine that it runs on.
struct HostFacts {
  std::string name;
  int num_cores = 0;              ///< Of the machine.
  std::vector<int> cores;         ///< That this process may run on, ascending.
  std::int64_t memory_bytes = 0;  ///< Of the machine, or what the control group allows if less.
};

/// Linux: sched_getaffinity, /proc/meminfo, /sys/fs/cgroup. kIo where they do not answer.
HostFacts host_facts();

std::string host_name();

/// Model of the processor, from /proc/cpuinfo; `unknown` where it does not say.
std::string processor_name();

namespace internal {

/// The value of the first line `key : value` of a file such as /proc/cpuinfo; empty if none.
std::string field_of(std::string_view text, std::string_view key);

/// The lowest of the machine's memory and what control groups allow.
///
/// meminfo   content of /proc/meminfo. limits: contents of memory.max, which may say `max`.
/// Errors    kIo where meminfo has no MemTotal.
std::int64_t usable_bytes(std::string_view meminfo, std::span<const std::string> limits);

}  // namespace internal

struct DetectOptions {
  std::int64_t device_memory_bytes = 0;  ///< Of each rank; 0: an equal part of its host's.
};

/// Where the ranks run: each one's host, the cores that it may use and its memory. The same on all
/// ranks; hosts in the order of their first ranks. Has passed topology::check.
///
/// Hosts are told apart by name. Blocking; all ranks call it.
topology::Topology detect_topology(const BusyRanks& ranks, const DetectOptions& options);

}  // namespace trireme::measure
