// Everybody sends its data to everybody who needs it, each combines for itself. Three ranks:
//
//     rank 0 has a          sends a to 1 and 2     combines a, b, c by the tree
//     rank 1 has b          sends b to 2 and 0     likewise
//     rank 2 has c          sends c to 0 and 1     likewise

#include "trireme/wire/collectives/schedule/generators.h"
#include "trireme/wire/collectives/schedule/schedule.h"

namespace trireme::collectives {
namespace {

/// Receives the data of all others and combines it with the own.
void collect(ScheduleBuilder& builder, const Setting& setting) {
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

void send_data(ScheduleBuilder& builder, const Setting& setting, const std::vector<int>& peers) {
  const Range data = internal::data_range({0, setting.count});
  for (const Range& segment : segments_of(data, setting.segment)) {
    for (const int peer : peers) builder.send(peer, segment);
  }
}

}  // namespace

Schedule one_shot_all_reduce(const Setting& setting) {
  ScheduleBuilder builder;
  if (setting.num_ranks == 1) return builder.take();
  send_data(builder, setting, internal::peers_of(setting));
  collect(builder, setting);
  return builder.take();
}

Schedule one_shot_reduce(const Setting& setting, int root) {
  ScheduleBuilder builder;
  if (setting.num_ranks == 1) return builder.take();
  if (setting.rank == root) {
    collect(builder, setting);
  } else {
    send_data(builder, setting, {root});
  }
  return builder.take();
}

Schedule one_shot_broadcast(const Setting& setting, int root) {
  ScheduleBuilder builder;
  if (setting.rank == root) {
    send_data(builder, setting, internal::peers_of(setting));
    return builder.take();
  }
  const Range data = internal::data_range({0, setting.count});
  for (const Range& segment : segments_of(data, setting.segment)) builder.recv(root, segment);
  return builder.take();
}

// all_to_all, and the barrier: nothing is cut or spread.

namespace {

std::vector<Range> consecutive(Place place, const std::vector<std::int64_t>& sizes) {
  std::vector<Range> result;
  std::int64_t begin = 0;
  for (const std::int64_t size : sizes) {
    result.push_back({place, begin, begin + size});
    begin += size;
  }
  return result;
}

}  // namespace

Schedule all_to_all_schedule(const Setting& setting, const ExchangeSizes& exchange) {
  ScheduleBuilder builder;
  const std::vector<Range> from = consecutive(Place::kInput, exchange.send_elements);
  const std::vector<Range> to = consecutive(Place::kData, exchange.recv_elements);
  std::vector<ScheduleBuilder::Parcel> parcels;
  for (const int peer : internal::peers_of(setting)) parcels.push_back({peer, {from[peer]}});
  builder.send_in_turn(parcels);
  for (const int peer : internal::peers_of(setting)) builder.recv(peer, to[peer]);
  builder.copy(to[setting.rank], from[setting.rank]);
  return builder.take();
}

Schedule barrier_schedule(const Setting& setting) {
  ScheduleBuilder builder;
  const Range data = internal::data_range({0, 1});
  for (int distance = 1; distance < setting.num_ranks; distance *= 2) {
    const Range heard = builder.scratch(1);
    builder.send((setting.rank + distance) % setting.num_ranks, data);
    builder.recv((setting.rank - distance + setting.num_ranks) % setting.num_ranks, heard);
    builder.reduce(data, {data, heard});
  }
  return builder.take();
}

}  // namespace trireme::collectives
