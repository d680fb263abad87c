#pragma once

#include <functional>
#include <vector>

#include "trireme/wire/collectives/schedule/algorithms.h"

namespace trireme::collectives {

/// Where a rank is among hosts of equally many ranks each: rank j of host i is i g + j.
struct HostPlace {
  explicit HostPlace(const CollectiveSetting& setting)
      : ranks_per_host(setting.ranks_per_host),
        num_hosts(setting.num_ranks / setting.ranks_per_host),
        host(setting.rank / setting.ranks_per_host),
        local(setting.rank % setting.ranks_per_host) {}

  int rank_at(int of_host, int of_local) const { return of_host * ranks_per_host + of_local; }

  /// From the next one on: those behind this rank's host, and behind it on its host.
  std::vector<int> other_hosts() const { return others(host, num_hosts); }
  std::vector<int> other_locals() const { return others(local, ranks_per_host); }

  int ranks_per_host;  ///< g
  int num_hosts;
  int host;
  int local;  ///< Rank on the host.

 private:
  static std::vector<int> others(int own, int count) {
    std::vector<int> result;
    for (int i = 1; i < count; ++i) result.push_back((own + i) % count);
    return result;
  }
};

/// Makes one rank's steps where each rank owns a part of the data, and what leaves a host goes along
/// rails: from rank j of it to ranks j of others. So each byte leaves once for each host that needs
/// it.
class TwoLevelSteps {
 public:
  /// parts   by rank, those of other hosts than the own, and those of the own, apart from each other.
  TwoLevelSteps(const CollectiveSetting& setting, std::vector<Chunk> parts);

  /// `root` has all data: nobody gives to it, nor anybody to its host from outside. Before `give`.
  void leave_out(int root);

  /// Combines the own part over all ranks: over those of each host there, by segments, and what
  /// they make where it is owned. Nothing but targets is written.
  ///
  /// target   where the result of a segment of the own part goes.
  /// next     follows it, on what was written.
  void combine_own(const std::function<Range(const Range& segment)>& target,
                   const std::function<void(const Range& result)>& next);

  /// Gives a segment of the own part to the rail and inside the host.
  void give(const Range& segment);

  /// Likewise the whole of it, to one host of the rail after the other.
  void give_own();

  /// Receives the parts of all others, each once on this host: those of the rail go on inside it.
  void collect();

  Range part(int host, int local) const;
  std::vector<Range> segments(const Range& range) const;
  std::vector<Range> own_segments() const { return segments(part(place_.host, place_.local)); }

  const HostPlace& place() const { return place_; }
  ScheduleBuilder& builder() { return builder_; }

 private:
  std::vector<int> hosts_own_last() const;
  void give_inside(const Range& segment);
  void give_elements();
  Range combine_inside(int host);

  const CollectiveSetting& setting_;
  const HostPlace place_;
  const std::vector<Chunk> parts_;
  std::vector<int> rails_;       ///< Hosts with which this rank exchanges parts.
  std::vector<int> neighbours_;  ///< Ranks on the host to which it gives them.
  ScheduleBuilder builder_;
};

// Schedules of `two_level`, in the files of these names.
namespace internal {

// two_level_sums.cc
CollectiveSchedule two_level_all_reduce(const CollectiveSetting& setting);
CollectiveSchedule two_level_reduce(const CollectiveSetting& setting);
CollectiveSchedule two_level_reduce_scatter(const CollectiveSetting& setting);

// two_level_moves.cc
CollectiveSchedule two_level_broadcast(const CollectiveSetting& setting);
CollectiveSchedule two_level_all_gather(const CollectiveSetting& setting);
CollectiveSchedule two_level_all_to_all(const CollectiveSetting& setting);
CollectiveSchedule two_level_barrier(const CollectiveSetting& setting);

}  // namespace internal
}  // namespace trireme::collectives
