#include "trireme/wire/collectives/schedule/algorithms.h"

#include <algorithm>
#include <string>

#include "trireme/error.h"
#include "trireme/kernels/reduce/parts.h"

namespace trireme::collectives {

CollectiveSchedule make_schedule(const CollectiveSetting& setting) {
  return entry_of(setting.algorithm).schedule(setting);
}

Dtype partial_dtype(Dtype dtype, kernels::ReduceOp op, Order order) {
  return order == Order::kAny ? dtype : kernels::partial_dtype(dtype, op);
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

void send_parts(ScheduleBuilder& builder, const CollectiveSetting& setting,
                std::span<const Chunk> parts) {
  std::vector<std::vector<Range>> segments;
  std::size_t most = 0;
  for (const Chunk& part : parts) {
    segments.push_back(segments_of(data_range(part), setting.segment));
    most = std::max(most, segments.back().size());
  }
  for (std::size_t i = 0; i < most; ++i) {
    for (const int peer : peers_of(setting)) {
      if (i < segments[peer].size()) builder.send(peer, segments[peer][i]);
    }
  }
}

void disseminate(ScheduleBuilder& builder, std::span<const int> ranks, int own) {
  const int size = static_cast<int>(ranks.size());
  const Range data = data_range({0, 1});
  for (int distance = 1; distance < size; distance *= 2) {
    const Range heard = builder.scratch(1);
    builder.send(ranks[(own + distance) % size], data);
    builder.recv(ranks[(own - distance + size) % size], heard);
    builder.reduce(data, {data, heard});
  }
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
