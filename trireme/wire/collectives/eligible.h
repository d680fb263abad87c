#pragma once

#include <vector>

#include "trireme/wire/collectives/description.h"

namespace trireme::collectives {

/// Whether `algorithm` can do what `task` describes: its operation, dtype, reduction, order and
/// group size; the description's own algorithm is not looked at. docs/algorithms.md has the table.
///
/// ranks_per_host   group ranks [0, ranks_per_host) share a host, then the next as many, and so on;
///                  1 where the hosts are not like that.
bool is_eligible(Algorithm algorithm, const Description& task, int ranks_per_host = 1);

/// Those that are, in the order of the enumeration.
std::vector<Algorithm> eligible_algorithms(const Description& task, int ranks_per_host = 1);

/// kInvalidArgument, with those that are, where it is not.
void check_eligible(Algorithm algorithm, const Description& task, int ranks_per_host = 1);

/// The ranks per host for `is_eligible` where group rank i runs on host `host_of_rank[i]`: 1 unless
/// all hosts have equally many ranks, each host's one after another.
int common_ranks_per_host(const std::vector<int>& host_of_rank);

}  // namespace trireme::collectives
