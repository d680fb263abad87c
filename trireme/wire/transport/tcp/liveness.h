#pragma once

#include <chrono>
#include <map>
#include <string>

#include "trireme/wire/transport/tcp/peer.h"

namespace trireme::transport::internal {

/// Whether the ranks of other hosts are alive: each tells the others when it has been silent for a
/// while. A connection may stay open beyond the end of its process, where a child has inherited it.
///
/// A rank that was heard once and then is silent for kMostSilent intervals, 7.5 to 9 s, is lost, be
/// it that its process was stopped. If this process was stopped itself, silence counts anew.
///
/// Threads  confined to the progress thread.
class Liveness {
 public:
  static constexpr std::chrono::milliseconds kInterval{1500};
  static constexpr int kMostSilent = 5;

  /// Of a rank whose process this host does not see.
  void add(int rank) { silent_.emplace(rank, kNeverHeard); }

  bool is_due() const { return !silent_.empty() && Clock::now() >= next_; }
  Deadline next() const { return silent_.empty() ? Deadline::max() : next_; }

  /// Tells and counts, once per interval. Throws kPeerLost.
  void look(std::map<int, Peer>& peers) {
    const Deadline now = Clock::now();
    const bool was_stopped = now > next_ + kInterval;
    next_ = now + kInterval;
    for (auto& [rank, count] : silent_) {
      Peer& peer = peers.at(rank);
      peer.tell_alive();
      const bool is_heard = peer.was_heard();
      if (is_heard || (was_stopped && count != kNeverHeard)) {
        count = 0;
      } else if (count != kNeverHeard && !peer.has_said_goodbye()) {
        ++count;
        if (count >= kMostSilent) throw lost_rank(rank, silence());
      }
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int kNeverHeard = -1;

  static std::string silence() {
    return "it was silent for " + std::to_string(kMostSilent * kInterval.count()) + " ms";
  }

  std::map<int, int> silent_;  ///< Intervals, by rank.
  Deadline next_ = Clock::now() + kInterval;
};

}  // namespace trireme::transport::internal
