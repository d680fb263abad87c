#include "trireme/wire/collectives/eligible.h"

#include <bit>
#include <set>
#include <string>

#include "trireme/error.h"

namespace trireme::collectives {
namespace {

using enum Algorithm;
using kernels::ReduceOp;

/// Whether partial results may be combined further with the bits of THE tree. Not where each is
/// rounded.
bool has_exact_partials(const Description& task) {
  const bool is_rounded =
      is_half(task.dtype) && task.reduce != ReduceOp::kMin && task.reduce != ReduceOp::kMax;
  return !is_rounded || task.order == Order::kAny;
}

/// Whether the sources of each step must be those of all ranks, in order: what is done to the sum
/// or to each source comes once.
bool needs_all_at_once(const Description& task) {
  return task.reduce == ReduceOp::kAverage || task.reduce == ReduceOp::kScaledSum;
}

/// Whether every order has the same bits, or none is asked for. Whole numbers wrap around.
bool is_order_free(const Description& task) {
  return task.order == Order::kAny || !is_real(task.dtype);
}

/// Whether there are several hosts of several ranks each.
bool has_two_levels(const Description& task, int ranks_per_host) {
  const int num_ranks = static_cast<int>(task.group_size);
  return ranks_per_host > 1 && ranks_per_host < num_ranks && num_ranks % ranks_per_host == 0;
}

bool can_all_reduce(Algorithm algorithm, const Description& task, int ranks_per_host) {
  if (algorithm == kTwoHop) return true;
  if (task.root != 0) return false;  // reducers
  if (algorithm == kOneShot) return true;
  if (needs_all_at_once(task) || !has_exact_partials(task)) return false;
  if (algorithm == kHalvingDoubling) return true;
  if (algorithm == kRing) return is_order_free(task);
  return has_two_levels(task, ranks_per_host) &&
         (std::has_single_bit(static_cast<unsigned>(ranks_per_host)) || is_order_free(task));
}

}  // namespace

bool is_eligible(Algorithm algorithm, const Description& task, int ranks_per_host) {
  switch (task.operation) {
    case Operation::kAllReduce:
      return kernels::is_reducible(task.dtype, task.reduce) &&
             can_all_reduce(algorithm, task, ranks_per_host);
    case Operation::kReduce:
      return kernels::is_reducible(task.dtype, task.reduce) &&
             (algorithm == kOneShot || algorithm == kTwoHop);
    case Operation::kReduceScatter:
      return kernels::is_reducible(task.dtype, task.reduce) &&
             (algorithm == kTwoHop || (algorithm == kRing && !needs_all_at_once(task) &&
                                       has_exact_partials(task) && is_order_free(task)));
    case Operation::kAllGather:
      return algorithm == kTwoHop || algorithm == kRing;
    case Operation::kBroadcast:
      return algorithm == kOneShot || algorithm == kTwoHop;
    case Operation::kBarrier:
    case Operation::kGather:
    case Operation::kScatter:
      return algorithm == kTwoHop;
    case Operation::kAllToAll:  // Of equal parts: of others only two ranks know the sizes.
      return algorithm == kTwoHop ||
             (algorithm == kTwoLevel && task.count > 0 && has_two_levels(task, ranks_per_host));
  }
  return false;
}

std::vector<Algorithm> eligible_algorithms(const Description& task, int ranks_per_host) {
  std::vector<Algorithm> result;
  for (int i = 0; i < kNumAlgorithms; ++i) {
    const auto algorithm = static_cast<Algorithm>(i);
    if (is_eligible(algorithm, task, ranks_per_host)) result.push_back(algorithm);
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
