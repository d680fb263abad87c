#include <algorithm>

#include "trireme/wire/collectives/schedule/two_level_steps.h"

namespace trireme::collectives::internal {

/// Each part goes to one rank of each other host, which gives it to the others there.
CollectiveSchedule two_level_all_gather(const CollectiveSetting& setting) {
  TwoLevelSteps steps(setting, setting.parts);
  steps.give_own();
  steps.collect();
  return steps.builder().take();
}

namespace {

/// What a broadcast's root gives to each rank: to those of other hosts the data in pieces, a row of
/// them per host; to the others of its own host the data once more, in as many as they are.
std::vector<Chunk> broadcast_parts(const CollectiveSetting& setting) {
  const HostPlace place(setting);
  const int own_host = setting.root / place.ranks_per_host;
  const int num_outside = setting.num_ranks - place.ranks_per_host;
  std::vector<Chunk> parts(setting.num_ranks);
  int outside = 0, inside = 0;
  for (int rank = 0; rank < setting.num_ranks; ++rank) {
    if (rank == setting.root) continue;
    const bool is_inside = rank / place.ranks_per_host == own_host;
    parts[rank] = is_inside ? chunk_of(setting.count, place.ranks_per_host - 1, inside++)
                            : chunk_of(setting.count, num_outside, outside++);
  }
  return parts;
}

}  // namespace

/// A part from the root to each rank of other hosts, and to each of its own; all of them give theirs
/// along the rail and inside. So the data leaves the root's host once. Two hosts of two ranks, root
/// 0, data `ab`:
///
///     rank 0 gives a to 2, b to 3, ab to 1;   2 gives a to 3, 3 gives b to 2
CollectiveSchedule two_level_broadcast(const CollectiveSetting& setting) {
  const std::vector<Chunk> parts = broadcast_parts(setting);
  TwoLevelSteps steps(setting, parts);
  if (setting.rank == setting.root) {
    send_parts(steps.builder(), setting, parts);
    return steps.builder().take();
  }
  steps.leave_out(setting.root);
  for (const Range& segment : steps.own_segments()) steps.builder().recv(setting.root, segment);
  for (const Range& segment : steps.own_segments()) steps.give(segment);
  steps.collect();
  return steps.builder().take();
}

/// Ranks of a host meet; then each meets its rail: who hears of a host there hears of all its ranks.
/// ceil(log2 N) messages from host to host one after another, in place of ceil(log2 N g).
CollectiveSchedule two_level_barrier(const CollectiveSetting& setting) {
  ScheduleBuilder builder;
  const HostPlace place(setting);
  std::vector<int> inside, rail;
  for (int local = 0; local < place.ranks_per_host; ++local) {
    inside.push_back(place.rank_at(place.host, local));
  }
  for (int host = 0; host < place.num_hosts; ++host) {
    rail.push_back(place.rank_at(host, place.local));
  }
  disseminate(builder, inside, place.local);
  disseminate(builder, rail, place.host);
  return builder.take();
}

// all_to_all over hosts of g ranks, N of them. A rank hands to each rank j of its host, in one message, what it
// has for the ranks j of all hosts; so that these, its rail, need one message from host to host for
// what g ranks have for one another:
//
//     inside the hosts      (h, i) gives (h, j) its parts for (0, j), (1, j), ...
//     between them          (h, j) gives (k, j) what (h, 0), (h, 1), ... have for (k, j)
//
// g - 1 messages and N - 1, in place of N g - 1; N - 1 leave the host in place of (N - 1) g.

namespace {

class TwoLevelAllToAll {
 public:
  explicit TwoLevelAllToAll(const CollectiveSetting& setting)
      : part_(setting.count), place_(setting), bundles_(place_.num_hosts) {}

  CollectiveSchedule make() {
    builder_.copy(part(Place::kData, place_.host, place_.local),
                  part(Place::kInput, place_.host, place_.local));
    give_inside();
    for (const int host : place_.other_hosts()) {
      bundles_[host] = builder_.scratch(place_.ranks_per_host * part_);
      builder_.copy(bundled(host, place_.local), part(Place::kInput, host, place_.local));
    }
    for (const int local : place_.other_locals()) take_inside(local);
    for (const int host : place_.other_hosts()) {
      builder_.send(place_.rank_at(host, place_.local), bundles_[host]);
    }
    for (const int host : place_.other_hosts()) {
      // Parts of a host's ranks follow each other.
      const Range first = part(Place::kData, host, 0);
      builder_.recv(place_.rank_at(host, place_.local),
                    {Place::kData, first.begin, first.begin + place_.ranks_per_host * part_});
    }
    return builder_.take();
  }

 private:
  Range part(Place place, int host, int local) const {
    const std::int64_t begin = place_.rank_at(host, local) * part_;
    return {place, begin, begin + part_};
  }

  /// Part `index` of a block of parts.
  Range part_in(const Range& block, int index) const {
    return part_of(block, index * part_, (index + 1) * part_);
  }

  /// Where what rank `local` of this host has for `host` waits to leave.
  Range bundled(int host, int local) const { return part_in(bundles_[host], local); }

  void give_inside() {
    for (const int local : place_.other_locals()) {
      const Range block = builder_.scratch(place_.num_hosts * part_);
      for (int host = 0; host < place_.num_hosts; ++host) {
        builder_.copy(part_in(block, host), part(Place::kInput, host, local));
      }
      builder_.send(place_.rank_at(place_.host, local), block);
    }
  }

  void take_inside(int local) {
    const Range block = builder_.scratch(place_.num_hosts * part_);
    builder_.recv(place_.rank_at(place_.host, local), block);
    builder_.copy(part(Place::kData, place_.host, local), part_in(block, place_.host));
    for (const int host : place_.other_hosts()) {
      builder_.copy(bundled(host, local), part_in(block, host));
    }
  }

  const std::int64_t part_;  ///< Elements.
  const HostPlace place_;
  std::vector<Range> bundles_;  ///< By host: what leaves for it.
  ScheduleBuilder builder_;
};

}  // namespace

CollectiveSchedule two_level_all_to_all(const CollectiveSetting& setting) {
  return TwoLevelAllToAll(setting).make();
}

}  // namespace trireme::collectives::internal
