#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/backend/ended_works.h"
#include "python/backend/world.h"
#include "trireme/wire/collectives/group.h"

namespace trireme::backend {

/// A process group: ranks of a world that run collectives, and what torch asks of them beside.
///
/// Threads  safe from any thread. Where several call, the order of their calls has to be the same on
///          all ranks, as everywhere.
class RankGroup {
 public:
  struct Options {
    std::string name;                     ///< The same on all ranks, and of this group alone.
    std::chrono::milliseconds timeout{};  ///< Of each operation, unless its call says another.
  };

  /// ranks   world ranks in group order, this one among them. All of them make it.
  RankGroup(std::shared_ptr<World> world, std::vector<int> ranks, Options options);

  /// Closes it.
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  int rank() const { return group_rank_; }
  int size() const { return static_cast<int>(ranks_.size()); }
  const std::vector<int>& ranks() const { return ranks_; }
  const std::shared_ptr<World>& world() const { return world_; }
  const std::string& name() const { return options_.name; }
  std::chrono::milliseconds timeout() const;
  void set_timeout(std::chrono::milliseconds timeout);

  /// Calls `start(collectives::Group&)` alone; operations that it starts have `timeout`, or the
  /// group's where there is none. Returns what it returns.
  ///
  /// Errors   kUnavailable of a group that is closed, and in a process that was forked.
  template <typename Start>
  auto start(std::optional<std::chrono::milliseconds> timeout, Start&& start) {
    check_own();
    const std::lock_guard lock(mutex_);
    collectives::Group& group = open_group();
    group.set_deadline(timeout.value_or(options_.timeout));
    return start(group);
  }

  /// What works that nobody waits for do when they have ended.
  EndedWorks& ended_works() { return *ended_works_; }

  /// The error that ended it; nothing while it is well.
  std::optional<Error> failure() const;

  /// Called once, before the memory that its operations share goes.
  void before_close(std::function<void()> call);

  /// Its operations fail on all its ranks; other groups go on.
  void abort(const std::string& reason);

  /// No call follows. Works under way fail. With the last group of a world this rank leaves it, and
  /// waits up to `patience` for the others. Once; later calls do nothing.
  void close(std::chrono::milliseconds patience);

 private:
  void check_own() const;
  collectives::Group& open_group();

  const std::shared_ptr<World> world_;  // shared with the other groups of the job
  const std::vector<int> ranks_;
  Options options_;  ///< Its timeout: under the mutex.
  int group_rank_;
  mutable std::mutex mutex_;
  std::unique_ptr<collectives::Group> group_;  ///< Null once it is closed.
  std::vector<std::function<void()>> before_close_;
  std::unique_ptr<EndedWorks> ended_works_ = std::make_unique<EndedWorks>();
};

}  // namespace trireme::backend
