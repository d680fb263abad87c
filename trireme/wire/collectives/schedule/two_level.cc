// What `two_level` can do, and at what cost; its schedules are in two_level_sums.cc and
// two_level_moves.cc. Not of gather and scatter: there a byte leaves its host once anyway, in the
// message that brings it to its end.

#include <bit>
#include <cmath>

#include "trireme/wire/collectives/schedule/two_level_steps.h"

namespace trireme::collectives {
namespace {

CollectiveSchedule two_level_schedule(const CollectiveSetting& setting) {
  switch (setting.operation) {
    case Collective::kAllReduce:
      return internal::two_level_all_reduce(setting);
    case Collective::kReduce:
      return internal::two_level_reduce(setting);
    case Collective::kReduceScatter:
      return internal::two_level_reduce_scatter(setting);
    case Collective::kAllGather:
      return internal::two_level_all_gather(setting);
    case Collective::kBroadcast:
      return internal::two_level_broadcast(setting);
    case Collective::kAllToAll:
      return internal::two_level_all_to_all(setting);
    case Collective::kBarrier:
      return internal::two_level_barrier(setting);
    default:
      internal::refuse_schedule(setting);
  }
}

bool two_level_can(const Description& task, int ranks_per_host) {
  if (!internal::has_two_levels(task, ranks_per_host)) return false;
  switch (task.operation) {
    case Collective::kAllReduce:
      if (task.root != 0) return false;  // reducers
      [[fallthrough]];
    case Collective::kReduce:
    case Collective::kReduceScatter:
      return std::has_single_bit(static_cast<unsigned>(ranks_per_host)) ||
             internal::is_order_free(task);
    case Collective::kAllToAll:
      return task.count > 0;  // equal parts: of others only two ranks know the sizes
    case Collective::kAllGather:
    case Collective::kBroadcast:
    case Collective::kBarrier:
      return true;
    default:
      return false;
  }
}

/// The part of a call inside the hosts, and that between them.
struct TwoShares {
  CostShare inside;
  CostShare between;
};

TwoShares sums_shares(const CostCase& m) {
  const double hosts = m.n / m.g;
  const double given = (m.g - 1) / m.g * m.bytes;  // inside, by each rank
  const double leaving = (hosts - 1) / hosts;      // of a host's data
  const CostShare first{1, given, m.bytes};
  if (m.operation == Collective::kReduceScatter) {
    return {first, {1, leaving * m.partial_bytes, m.partial_bytes / m.g}};
  }
  if (m.operation == Collective::kAllReduce) {
    return {{2, 2 * given, m.bytes},
            {2, leaving * (m.partial_bytes + m.bytes), m.partial_bytes / m.g}};
  }
  const double owners = hosts > 2 ? hosts - 1 : 1;  // of a reduce
  const CostShare between{hosts > 2 ? 2.0 : 1.0, m.partial_bytes,
                          hosts * m.partial_bytes / (owners * m.g)};
  return {hosts > 2 ? first : CostShare{2, 2 * given, m.bytes}, between};
}

TwoShares moves_shares(const CostCase& m) {
  const double hosts = m.n / m.g;
  switch (m.operation) {
    case Collective::kAllGather:
      return {{1, (m.g - 1) / m.g * m.bytes}, {1, (hosts - 1) / hosts * m.bytes}};
    case Collective::kBroadcast:
      return {{1, m.bytes}, {hosts > 2 ? 2.0 : 1.0, m.bytes}};
    case Collective::kBarrier:
      return {{std::ceil(std::log2(m.g))}, {std::ceil(std::log2(hosts))}};
    default:  // all_to_all; inside, a message has parts for every host; m.bytes is that of a part
      return {{1 + kNextMessage * (m.g - 2), (m.g - 1) * hosts * m.bytes},
              {1 + kNextMessage * (hosts - 2), m.to_all(m.bytes)}};
  }
}

double two_level_seconds(const CostCase& m, const Costs& costs) {
  const auto [inside, between] = reduces(m.operation) ? sums_shares(m) : moves_shares(m);
  return seconds_of(inside, costs.local, costs.gamma_s_per_byte) +
         seconds_of(between, costs.network, costs.gamma_s_per_byte);
}

}  // namespace

const AlgorithmEntry kTwoLevelEntry{.algorithm = Algorithm::kTwoLevel,
                                    .name = "two_level",
                                    .can = two_level_can,
                                    .seconds = two_level_seconds,
                                    .schedule = two_level_schedule};

}  // namespace trireme::collectives
