#pragma once

#include <string>
#include <vector>

#include "trireme/wire/doctor/finding.h"

namespace trireme::doctor {

/// Looks at this host as a rank's process sees it: addresses, descriptors, locked memory, the
/// kernel's limits for sockets, memfd and futex, cores, clock.
///
/// local_ranks   that are to run on it; 0: not known.
std::vector<Finding> examine_host(int local_ranks = 0);

/// Whether ranks may read each other's memory where the kernel's Yama has that scope.
Finding judge_peer_memory(const std::string& ptrace_scope);

}  // namespace trireme::doctor
