#include "trireme/wire/collectives/schedule/algorithms.h"

#include <string>

#include "trireme/error.h"

namespace trireme::collectives {

CollectiveSchedule make_schedule(const CollectiveSetting& setting) {
  return entry_of(setting.algorithm).schedule(setting);
}

namespace internal {

using kernels::ReduceOp;

std::vector<Chunk> chunks_of(const CollectiveSetting& setting) {
  return reducer_chunks(setting.count, setting.num_ranks, setting.num_reducers);
}

std::vector<int> peers_of(const CollectiveSetting& setting) {
  std::vector<int> result;
  for (int i = 1; i < setting.num_ranks; ++i) {
    result.push_back((setting.rank + i) % setting.num_ranks);
  }
  return result;
}

bool has_exact_partials(const Description& task) {
  const bool is_exact = task.reduce == ReduceOp::kMin || task.reduce == ReduceOp::kMax ||
                        task.reduce == ReduceOp::kRoundedSum;
  return is_exact || !is_half(task.dtype) || task.order == Order::kAny;
}

bool needs_all_at_once(const Description& task) {
  return task.reduce == ReduceOp::kAverage || task.reduce == ReduceOp::kScaledSum;
}

bool is_order_free(const Description& task) {
  return task.order == Order::kAny || !is_real(task.dtype);
}

bool has_two_levels(const Description& task, int ranks_per_host) {
  const int num_ranks = static_cast<int>(task.group_size);
  return ranks_per_host > 1 && ranks_per_host < num_ranks && num_ranks % ranks_per_host == 0;
}

void refuse_schedule(const CollectiveSetting& setting) {
  throw Error(ErrorKind::kInvalidArgument,
              std::string(to_text(setting.algorithm)) + " has no schedule of " +
                  std::string(to_text(setting.operation)) + "; see is_eligible");
}

}  // namespace internal
}  // namespace trireme::collectives
