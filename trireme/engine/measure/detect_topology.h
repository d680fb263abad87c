#pragma once

#include <cstdint>
#include <string>
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

struct DetectOptions {
  std::int64_t device_memory_bytes = 0;  ///< Of each rank; 0: an equal part of its host's.
  int threads = 1;                       ///< That this rank computes with.
  double speed = 1;                      ///< Of this rank: RankPlace::speed.
  bool with_parts = false;               ///< NUMA nodes and devices of the hosts too.
};

/// Where the ranks run: each one's host, the cores that it may use and its memory. The same on all
/// ranks; hosts in the order of their first ranks. Has passed topology::check.
///
/// Hosts are told apart by name. Blocking; all ranks call it.
topology::Topology detect_topology(const BusyRanks& ranks, const DetectOptions& options);

}  // namespace trireme::measure
