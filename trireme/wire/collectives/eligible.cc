#include "trireme/wire/collectives/eligible.h"

#include <set>
#include <string>

#include "trireme/error.h"
#include "trireme/wire/collectives/schedule/algorithms.h"

namespace trireme::collectives {

bool is_eligible(Algorithm algorithm, const Description& task, int ranks_per_host) {
  if (reduces(task.operation) && !kernels::is_reducible(task.dtype, task.reduce)) return false;
  return entry_of(algorithm).can(task, ranks_per_host);
}

std::vector<Algorithm> eligible_algorithms(const Description& task, int ranks_per_host) {
  std::vector<Algorithm> result;
  for (const AlgorithmEntry* entry : kAlgorithmTable) {
    if (is_eligible(entry->algorithm, task, ranks_per_host)) result.push_back(entry->algorithm);
  }
  return result;
}

void check_eligible(Algorithm algorithm, const Description& task, int ranks_per_host) {
  if (is_eligible(algorithm, task, ranks_per_host)) return;
  std::string names;
  for (const Algorithm other : eligible_algorithms(task, ranks_per_host)) {
    names += (names.empty() ? "" : ", ") + std::string(to_text(other));
  }
  throw Error(ErrorKind::kInvalidArgument,
              std::string(to_text(algorithm)) + " cannot do " + to_text(task) + " in " +
                  std::string(to_text(task.order)) + " order; " +
                  (names.empty() ? "nothing can" : "these can: " + names));
}

int common_ranks_per_host(const std::vector<int>& host_of_rank) {
  std::size_t first = 0;  // ranks of the first host
  while (first < host_of_rank.size() && host_of_rank[first] == host_of_rank[0]) ++first;
  if (first == 0 || host_of_rank.size() % first != 0) return 1;
  std::set<int> hosts;
  for (std::size_t rank = 0; rank < host_of_rank.size(); ++rank) {
    if (rank % first == 0 && !hosts.insert(host_of_rank[rank]).second) return 1;
    if (host_of_rank[rank] != host_of_rank[rank - rank % first]) return 1;
  }
  return static_cast<int>(first);
}

}  // namespace trireme::collectives
