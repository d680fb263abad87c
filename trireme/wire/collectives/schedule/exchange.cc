// all_to_all, and the barrier: nothing is cut or spread.

#include "trireme/wire/collectives/schedule/builder.h"
#include "trireme/wire/collectives/schedule/generators.h"

namespace trireme::collectives {
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
