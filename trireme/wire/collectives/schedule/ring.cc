// Each rank takes from the rank before it and gives to the one behind it. Chunk c starts on rank
// c + 1 and is complete on rank c; then it goes round once more. Three ranks, data `abc`:
//
//     rank 0   sends c0     gets b2, sends b20     gets a: a120
//     rank 1   sends a1     gets c0, sends c01     gets b: b201
//     rank 2   sends b2     gets a1, sends a12     gets c: c012
//
// The order of a sum is that of the way, which differs between chunks.

#include "trireme/wire/collectives/schedule/algorithms.h"

namespace trireme::collectives {
namespace {

using internal::data_range;

class Ring {
 public:
  Ring(const CollectiveSetting& setting, const std::vector<Chunk>& parts)
      : setting_(setting), parts_(parts) {}

  void reduce_scatter() {
    std::vector<Range> leaving = segments_of(part(-1), setting_.segment);
    for (int step = 0; step < setting_.num_ranks - 1; ++step) {
      const std::vector<Range> own = segments_of(part(-2 - step), setting_.segment);
      const bool is_last = step == setting_.num_ranks - 2;
      const std::vector<Range> arriving =
          segments_of(builder_.scratch(part(-2 - step).size()), setting_.segment);
      for (const Range& segment : leaving) builder_.send(at(1), segment);
      for (const Range& segment : arriving) builder_.recv(at(-1), segment);
      for (std::size_t i = 0; i < own.size(); ++i) {
        builder_.reduce(is_last ? own[i] : arriving[i], {arriving[i], own[i]});
      }
      leaving = arriving;
    }
  }

  void all_gather() {
    for (int step = 0; step < setting_.num_ranks - 1; ++step) {
      for (const Range& segment : segments_of(part(-step), setting_.segment)) {
        builder_.send(at(1), segment);
      }
      for (const Range& segment : segments_of(part(-1 - step), setting_.segment)) {
        builder_.recv(at(-1), segment);
      }
    }
  }

  CollectiveSchedule take() { return builder_.take(); }

 private:
  /// The rank `distance` behind this one.
  int at(int distance) const {
    const int size = setting_.num_ranks;
    return ((setting_.rank + distance) % size + size) % size;
  }

  Range part(int distance) const { return data_range(parts_[at(distance)]); }

  const CollectiveSetting& setting_;
  const std::vector<Chunk>& parts_;
  ScheduleBuilder builder_;
};

CollectiveSchedule ring_schedule(const CollectiveSetting& setting) {
  const bool is_all_reduce = setting.operation == Collective::kAllReduce;
  const std::vector<Chunk> parts = is_all_reduce ? internal::chunks_of(setting) : setting.parts;
  Ring ring(setting, parts);
  switch (setting.operation) {
    case Collective::kAllReduce:
      ring.reduce_scatter();
      ring.all_gather();
      return ring.take();
    case Collective::kReduceScatter:
      ring.reduce_scatter();
      return ring.take();
    case Collective::kAllGather:
      ring.all_gather();
      return ring.take();
    default:
      internal::refuse_schedule(setting);
  }
}

bool ring_can(const Description& task, int /*ranks_per_host*/) {
  if (task.operation == Collective::kAllGather) return true;
  const bool is_all_reduce = task.operation == Collective::kAllReduce;
  if (!is_all_reduce && task.operation != Collective::kReduceScatter) return false;
  if (is_all_reduce && task.root != 0) return false;  // reducers
  return !internal::needs_all_at_once(task) && internal::has_exact_partials(task) &&
         internal::is_order_free(task);
}

/// Only one rank of a host sends out of it.
double ring_seconds(const CostCase& m, const Costs& costs) {
  const double steps = m.n - 1;
  const double bytes = steps / m.n * m.bytes;
  CostShare share{steps, bytes, m.operation == Collective::kAllGather ? 0 : 2 * bytes};
  if (m.operation == Collective::kAllReduce) share = {2 * steps, 2 * bytes, 2 * bytes};
  return seconds_of(share, m.link(costs), costs.gamma_s_per_byte);
}

}  // namespace

const AlgorithmEntry kRingEntry{.algorithm = Algorithm::kRing,
                                .name = "ring",
                                .can = ring_can,
                                .seconds = ring_seconds,
                                .schedule = ring_schedule};

}  // namespace trireme::collectives
