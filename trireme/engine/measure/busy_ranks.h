#pragma once

#include <string>
#include <utility>
#include <vector>

#include "trireme/wire/collectives/group.h"

namespace trireme::measure {

/// The ranks that measure at the same time, each on its own cores but on shared memory and caches:
/// they do the same things in the same order, so that a node is measured while the others run it.
///
/// All members block; every rank calls them in the same order. Errors are the group's.
class BusyRanks {
 public:
  /// This rank alone.
  BusyRanks() = default;

  /// group   all ranks that measure; outlives this. watch: of every wait for another rank.
  BusyRanks(collectives::Group& group, transport::WatchOptions watch)
      : group_(&group), watch_(std::move(watch)) {}

  int num_ranks() const { return group_ == nullptr ? 1 : group_->size(); }
  int rank() const { return group_ == nullptr ? 0 : group_->group_rank(); }
  bool is_first() const { return rank() == 0; }

  const transport::WatchOptions& watch() const { return watch_; }

  /// Until all are here.
  void barrier() const;

  /// The median over ranks of each number; the same on all. mine: of the same size on all.
  std::vector<double> medians(const std::vector<double>& mine) const;

  /// Everybody's text, by rank.
  std::vector<std::string> gather(const std::string& mine) const;

  /// What one rank has, as many numbers on all.
  std::vector<double> from(int rank, std::vector<double> mine) const;

  /// What the first rank has.
  std::string from_first(const std::string& mine) const { return gather(mine).front(); }

 private:
  void wait(const transport::WorkPtr& work, const char* operation) const;

  collectives::Group* group_ = nullptr;
  transport::WatchOptions watch_;
};

}  // namespace trireme::measure
