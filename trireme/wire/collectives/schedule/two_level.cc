// Hosts of g ranks. Rank j of a host owns chunk j there and does two hops over it with the ranks j
// of the other hosts (its rail), for which chunk j is cut once more, a piece per host. Two hosts of
// two ranks, data `abcd`, chunk 0 = ab, chunk 1 = cd:
//
//     inside the hosts      rank 0 sums ab(01)   rank 1 sums cd(01)   2: ab(23)   3: cd(23)
//     between them          rank 0 sums a, gets b from 2; rank 1 sums c, gets d from 3; ...
//     inside the hosts      rank 0 gives ab to 1 and gets cd from it; ...
//
// If g is a power of two, the sums over the ranks of a host are subtrees of THE tree, and the hosts
// are combined by the tree of what is above.

#include <bit>
#include <vector>

#include "trireme/wire/collectives/schedule/algorithms.h"

namespace trireme::collectives {
namespace {

class TwoLevel {
 public:
  explicit TwoLevel(const CollectiveSetting& setting)
      : setting_(setting),
        ranks_per_host_(setting.ranks_per_host),
        num_hosts_(setting.num_ranks / ranks_per_host_),
        host_(setting.rank / ranks_per_host_),
        local_(setting.rank % ranks_per_host_) {}

  CollectiveSchedule make() {
    send_inside();
    const std::vector<Range> slots = slots_for(piece(host_, local_), num_hosts_, host_);
    sum_inside();
    for (const int host : other_hosts()) {
      for (const Range& segment : segments(slots[host]))
        builder_.recv(rank_at(host, local_), segment);
    }
    sum_between(slots);
    collect_between();
    recv_inside();
    return builder_.take();
  }

 private:
  int rank_at(int host, int local) const { return host * ranks_per_host_ + local; }

  /// The piece of host `host` in chunk `local`.
  Range piece(int host, int local) const {
    const Chunk chunk = chunk_of(setting_.count, ranks_per_host_, local);
    const Chunk part = chunk_of(chunk.size(), num_hosts_, host);
    return {Place::kData, chunk.begin + part.begin, chunk.begin + part.end};
  }

  std::vector<Range> segments(const Range& range) const {
    return segments_of(range, setting_.segment);
  }

  std::vector<int> other_hosts() const {
    std::vector<int> result;
    for (int i = 1; i < num_hosts_; ++i) result.push_back((host_ + i) % num_hosts_);
    return result;
  }

  std::vector<int> other_locals() const {
    std::vector<int> result;
    for (int i = 1; i < ranks_per_host_; ++i) result.push_back((local_ + i) % ranks_per_host_);
    return result;
  }

  /// The order in which pieces are summed inside: those that leave the host first.
  std::vector<int> hosts_own_last() const {
    std::vector<int> result = other_hosts();
    result.push_back(host_);
    return result;
  }

  /// Scratch for `range` from each of `count` sources, `range` itself for the own.
  std::vector<Range> slots_for(const Range& range, int count, int own) {
    std::vector<Range> slots(count, range);
    for (int i = 0; i < count; ++i) {
      if (i != own) slots[i] = builder_.scratch(range.size());
    }
    return slots;
  }

  void send_inside() {
    for (const int host : hosts_own_last()) {
      for (const int local : other_locals()) {
        for (const Range& segment : segments(piece(host, local))) {
          builder_.send(rank_at(host_, local), segment);
        }
      }
    }
  }

  void reduce_segments(const Range& range, const std::vector<Range>& slots) {
    std::int64_t begin = 0;
    for (const Range& segment : segments(range)) {
      std::vector<Range> sources;
      for (const Range& slot : slots) {
        sources.push_back(part_of(slot, begin, begin + segment.size()));
      }
      builder_.reduce(segment, sources);
      begin += segment.size();
    }
  }

  /// Sums chunk `local_` over the ranks of the host; pieces of other hosts leave.
  void sum_inside() {
    for (const int host : hosts_own_last()) {
      const Range range = piece(host, local_);
      const std::vector<Range> slots = slots_for(range, ranks_per_host_, local_);
      for (const int local : other_locals()) {
        for (const Range& segment : segments(slots[local])) {
          builder_.recv(rank_at(host_, local), segment);
        }
      }
      reduce_segments(range, slots);
      if (host == host_) continue;
      for (const Range& segment : segments(range)) builder_.send(rank_at(host, local_), segment);
    }
  }

  void sum_between(const std::vector<Range>& slots) {
    const Range own = piece(host_, local_);
    reduce_segments(own, slots);
    for (const Range& segment : segments(own)) {
      for (const int host : other_hosts()) builder_.send(rank_at(host, local_), segment);
      spread_inside(segment);
    }
  }

  void spread_inside(const Range& segment) {
    for (const int local : other_locals()) builder_.send(rank_at(host_, local), segment);
  }

  void collect_between() {
    for (const int host : other_hosts()) {
      for (const Range& segment : segments(piece(host, local_))) {
        builder_.recv(rank_at(host, local_), segment);
        spread_inside(segment);
      }
    }
  }

  /// In the order in which `sum_between` and `collect_between` send.
  void recv_inside() {
    for (const int local : other_locals()) {
      const int peer = rank_at(host_, local);
      for (const Range& segment : segments(piece(host_, local))) builder_.recv(peer, segment);
      for (const int host : other_hosts()) {
        for (const Range& segment : segments(piece(host, local))) builder_.recv(peer, segment);
      }
    }
  }

  const CollectiveSetting& setting_;
  const int ranks_per_host_;
  const int num_hosts_;
  const int host_;
  const int local_;  ///< Rank on the host.
  ScheduleBuilder builder_;
};

// all_to_all over hosts of g ranks, N of them. A rank hands to each rank j of its host, in one message, what it
// has for the ranks j of all hosts; so that these, its rail, need one message from host to host for
// what g ranks have for one another:
//
//     inside the hosts      (h, i) gives (h, j) its parts for (0, j), (1, j), ...
//     between them          (h, j) gives (k, j) what (h, 0), (h, 1), ... have for (k, j)
//
// g - 1 messages and N - 1, in place of N g - 1; N - 1 leave the host in place of (N - 1) g.

class TwoLevelAllToAll {
 public:
  explicit TwoLevelAllToAll(const CollectiveSetting& setting)
      : part_(setting.count),
        ranks_per_host_(setting.ranks_per_host),
        num_hosts_(setting.num_ranks / ranks_per_host_),
        host_(setting.rank / ranks_per_host_),
        local_(setting.rank % ranks_per_host_),
        bundles_(num_hosts_) {}

  CollectiveSchedule make() {
    builder_.copy(part(Place::kData, host_, local_), part(Place::kInput, host_, local_));
    give_inside();
    for (const int host : others(host_, num_hosts_)) {
      bundles_[host] = builder_.scratch(ranks_per_host_ * part_);
      builder_.copy(bundled(host, local_), part(Place::kInput, host, local_));
    }
    for (const int local : others(local_, ranks_per_host_)) take_inside(local);
    for (const int host : others(host_, num_hosts_)) {
      builder_.send(rank_at(host, local_), bundles_[host]);
    }
    for (const int host : others(host_, num_hosts_)) {
      // Parts of a host's ranks follow each other.
      const Range first = part(Place::kData, host, 0);
      builder_.recv(rank_at(host, local_),
                    {Place::kData, first.begin, first.begin + ranks_per_host_ * part_});
    }
    return builder_.take();
  }

 private:
  int rank_at(int host, int local) const { return host * ranks_per_host_ + local; }

  Range part(Place place, int host, int local) const {
    const std::int64_t begin = rank_at(host, local) * part_;
    return {place, begin, begin + part_};
  }

  /// Part `index` of a block of parts.
  Range part_in(const Range& block, int index) const {
    return part_of(block, index * part_, (index + 1) * part_);
  }

  /// Where what rank `local` of this host has for `host` waits to leave.
  Range bundled(int host, int local) const { return part_in(bundles_[host], local); }

  /// All but `own` of `count`, from the one behind it on.
  static std::vector<int> others(int own, int count) {
    std::vector<int> result;
    for (int i = 1; i < count; ++i) result.push_back((own + i) % count);
    return result;
  }

  void give_inside() {
    for (const int local : others(local_, ranks_per_host_)) {
      const Range block = builder_.scratch(num_hosts_ * part_);
      for (int host = 0; host < num_hosts_; ++host) {
        builder_.copy(part_in(block, host), part(Place::kInput, host, local));
      }
      builder_.send(rank_at(host_, local), block);
    }
  }

  void take_inside(int local) {
    const Range block = builder_.scratch(num_hosts_ * part_);
    builder_.recv(rank_at(host_, local), block);
    builder_.copy(part(Place::kData, host_, local), part_in(block, host_));
    for (const int host : others(host_, num_hosts_)) {
      builder_.copy(bundled(host, local), part_in(block, host));
    }
  }

  const std::int64_t part_;  ///< Elements.
  const int ranks_per_host_;
  const int num_hosts_;
  const int host_;
  const int local_;             ///< Rank on the host.
  std::vector<Range> bundles_;  ///< By host: what leaves for it.
  ScheduleBuilder builder_;
};

CollectiveSchedule two_level_schedule(const CollectiveSetting& setting) {
  if (setting.operation == Collective::kAllReduce) return TwoLevel(setting).make();
  if (setting.operation == Collective::kAllToAll) return TwoLevelAllToAll(setting).make();
  internal::refuse_schedule(setting);
}

bool two_level_can(const Description& task, int ranks_per_host) {
  if (!internal::has_two_levels(task, ranks_per_host)) return false;
  // Of equal parts: of others only two ranks know the sizes.
  if (task.operation == Collective::kAllToAll) return task.count > 0;
  return task.operation == Collective::kAllReduce && task.root == 0 /* no reducers */ &&
         !internal::needs_all_at_once(task) && internal::has_exact_partials(task) &&
         (std::has_single_bit(static_cast<unsigned>(ranks_per_host)) ||
          internal::is_order_free(task));
}

/// Inside, a message has parts for every host; m.bytes is that of a part.
double two_level_exchange_seconds(const CostCase& m, const Costs& costs) {
  const double hosts = m.n / m.g;
  return seconds_of({1 + kNextMessage * (m.g - 2), (m.g - 1) * hosts * m.bytes}, costs.local, 0) +
         seconds_of({1 + kNextMessage * (hosts - 2), m.to_all(m.bytes)}, costs.network, 0);
}

double two_level_seconds(const CostCase& m, const Costs& costs) {
  if (m.operation == Collective::kAllToAll) return two_level_exchange_seconds(m, costs);
  const double hosts = m.n / m.g;
  const CostShare inside{2, 2 * (m.g - 1) / m.g * m.bytes, m.bytes};
  const CostShare between{2, 2 * (hosts - 1) / hosts * m.bytes, m.bytes / m.g};
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
