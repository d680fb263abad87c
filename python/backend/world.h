#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <mutex>

#include "python/backend/rendezvous.h"
#include "trireme/wire/bootstrap/store.h"
#include "trireme/wire/collectives/tuner.h"
#include "trireme/wire/endpoint/endpoint.h"

namespace trireme::backend {

/// The connections of this process to the other ranks of a job, which its process groups share. They
/// end with the last of these groups.
///
/// Threads  safe from any thread.
class World {
 public:
  /// Connects to all ranks, through what rank 0 says at the rendezvous. Blocks.
  ///
  /// Errors   kTimeout, naming who is missing; those of `connect_world`.
  World(Rendezvous& rendezvous, int rank, int size, std::chrono::milliseconds deadline);

  /// In a process that was forked, the connections are its parent's: they are left alone.
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  /// Of messages between these ranks.
  const collectives::Costs& costs() const { return costs_; }

  /// kUnavailable after the last group has left.
  transport::Endpoint& endpoint() const;

  bool is_open() const;

  /// Whether this process has made it, and was not forked from the one that has.
  bool is_own() const;

  /// A group of these ranks begins, or ends. With the last one this rank says goodbye and waits up to
  /// `patience` for the others' goodbyes; those that go on longer do without this rank. A world that
  /// has failed ends all the same: its groups have reported why.
  void enter();
  void leave(std::chrono::milliseconds patience);

 private:
  const int rank_;
  const int size_;
  const pid_t owner_;
  collectives::Costs costs_;
  mutable std::mutex mutex_;
  std::unique_ptr<transport::Endpoint> endpoint_;
  int num_groups_ = 0;
};

}  // namespace trireme::backend
