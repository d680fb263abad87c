#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "trireme/wire/transport/envelope.h"

namespace trireme::transport {

/// Short words between ranks that nobody has to ask for and nobody waits for: each endpoint keeps
/// the last one of every (peer, tag).
///
/// Threads  safe from any thread.
class Notes {
 public:
  virtual ~Notes() = default;

  /// Sends `note` to another rank. Never blocks; lost where the world fails or `peer` has left.
  /// kInvalidArgument where there is no such peer.
  virtual void tell(int peer, Tag tag, const Envelope& note) = 0;

  /// The last note that has arrived from `peer` under `tag`; nothing before the first.
  virtual std::optional<Envelope> heard(int peer, Tag tag) const = 0;

  /// Whether `peer` has said goodbye: it makes no call any more.
  virtual bool has_left(int peer) const = 0;
};

/// Where an endpoint keeps what it has heard. Grows by one entry per (peer, tag).
///
/// Threads  safe from any thread.
class NoteBoard {
 public:
  void put(int peer, Tag tag, const Envelope& note) {
    const std::lock_guard lock(mutex_);
    notes_[{peer, tag}] = note;
  }

  void mark_left(int peer) {
    const std::lock_guard lock(mutex_);
    left_.insert(peer);
  }

  bool has_left(int peer) const {
    const std::lock_guard lock(mutex_);
    return left_.contains(peer);
  }

  std::optional<Envelope> get(int peer, Tag tag) const {
    const std::lock_guard lock(mutex_);
    const auto found = notes_.find({peer, tag});
    return found == notes_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<int, Tag>, Envelope> notes_;
  std::set<int> left_;  ///< Peers that have said goodbye.
};

}  // namespace trireme::transport
