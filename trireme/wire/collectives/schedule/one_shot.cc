// Everybody sends its data to everybody who needs it, each combines for itself. Three ranks:
//
//     rank 0 has a          sends a to 1 and 2     combines a, b, c by the tree
//     rank 1 has b          sends b to 2 and 0     likewise
//     rank 2 has c          sends c to 0 and 1     likewise

#include "trireme/wire/collectives/schedule/algorithms.h"

namespace trireme::collectives {
namespace {

/// Receives the data of all others and combines it with the own.
void collect(ScheduleBuilder& builder, const CollectiveSetting& setting) {
  const Range data = internal::data_range({0, setting.count});
  std::vector<Range> slots(setting.num_ranks, data);
  for (const int peer : internal::peers_of(setting)) slots[peer] = builder.scratch(setting.count);
  for (const Range& segment : segments_of(data, setting.segment)) {
    for (const int peer : internal::peers_of(setting)) {
      builder.recv(peer, part_of(slots[peer], segment.begin, segment.end));
    }
  }
  for (const Range& segment : segments_of(data, setting.segment)) {
    std::vector<Range> sources;
    for (const Range& slot : slots) sources.push_back(part_of(slot, segment.begin, segment.end));
    builder.reduce(segment, sources);
  }
}

void send_data(ScheduleBuilder& builder, const CollectiveSetting& setting,
               const std::vector<int>& peers) {
  const Range data = internal::data_range({0, setting.count});
  for (const Range& segment : segments_of(data, setting.segment)) {
    for (const int peer : peers) builder.send(peer, segment);
  }
}

CollectiveSchedule one_shot_all_reduce(const CollectiveSetting& setting) {
  ScheduleBuilder builder;
  if (setting.num_ranks == 1) return builder.take();
  send_data(builder, setting, internal::peers_of(setting));
  collect(builder, setting);
  return builder.take();
}

CollectiveSchedule one_shot_reduce(const CollectiveSetting& setting) {
  ScheduleBuilder builder;
  if (setting.num_ranks == 1) return builder.take();
  if (setting.rank == setting.root) {
    collect(builder, setting);
  } else {
    send_data(builder, setting, {setting.root});
  }
  return builder.take();
}

CollectiveSchedule one_shot_broadcast(const CollectiveSetting& setting) {
  ScheduleBuilder builder;
  if (setting.rank == setting.root) {
    send_data(builder, setting, internal::peers_of(setting));
    return builder.take();
  }
  const Range data = internal::data_range({0, setting.count});
  for (const Range& segment : segments_of(data, setting.segment)) {
    builder.recv(setting.root, segment);
  }
  return builder.take();
}

CollectiveSchedule one_shot_schedule(const CollectiveSetting& setting) {
  switch (setting.operation) {
    case Collective::kAllReduce:
      return one_shot_all_reduce(setting);
    case Collective::kReduce:
      return one_shot_reduce(setting);
    case Collective::kBroadcast:
      return one_shot_broadcast(setting);
    default:
      internal::refuse_schedule(setting);
  }
}

bool one_shot_can(const Description& task, int /*ranks_per_host*/) {
  if (task.operation == Collective::kAllReduce) return task.root == 0;  // no reducers
  return task.operation == Collective::kReduce || task.operation == Collective::kBroadcast;
}

double one_shot_seconds(const CostCase& m, const Costs& costs) {
  // The root's link is the bottleneck of reduce and broadcast.
  const bool has_one_end = m.operation != Collective::kAllReduce;
  const double bytes = has_one_end ? (m.n - m.sharing()) * m.bytes : m.to_all(m.bytes);
  const bool is_reduced = m.operation != Collective::kBroadcast;
  return seconds_of({1, bytes, is_reduced ? m.n * m.bytes : 0}, m.link(costs),
                    costs.gamma_s_per_byte);
}

}  // namespace

const AlgorithmEntry kOneShotEntry{.algorithm = Algorithm::kOneShot,
                                   .name = "one_shot",
                                   .can = one_shot_can,
                                   .seconds = one_shot_seconds,
                                   .schedule = one_shot_schedule};

}  // namespace trireme::collectives
