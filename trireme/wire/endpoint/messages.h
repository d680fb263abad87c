#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "trireme/wire/endpoint/work.h"

namespace trireme::transport {

/// Names a stream of messages between two ranks; both compute it from what they both know. Those
/// with the highest bit set belong to wire/collectives.
using Tag = std::uint64_t;

/// What travels with a message, before its bytes: sender and receiver give it a meaning, zeros have
/// none.
using Envelope = std::array<std::byte, 48>;

/// Looks at the envelope of a message before its memory is asked for. Called once, on a thread of
/// the endpoint; must not call the endpoint. What it throws ends the world.
using Inspection = std::function<void(const Envelope& envelope)>;

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

/// Of a recv: whichever rank's message comes first.
inline constexpr int kAnySource = -1;

/// What both sides say of a message.
struct MessageLabel {
  std::uint64_t tag = 0;       ///< A recv takes messages of its tag alone.
  std::array<char, 8> type{};  ///< Name of its elements' type, zeros behind it.

  bool operator==(const MessageLabel&) const = default;
};

/// Of at most 8 letters.
constexpr std::array<char, 8> type_name(std::string_view name) {
  std::array<char, 8> letters{};
  std::copy_n(name.begin(), std::min(name.size(), letters.size()), letters.begin());
  return letters;
}

struct MessageToSend {
  Tag domain;  ///< Its first tag.
  int peer;    ///< World rank.
  MessageLabel label;
  std::span<const std::byte> data;  ///< Lent until the work ends.
};

struct MessageToReceive {
  Tag domain;  ///< Its first tag.
  int source;  ///< World rank, or kAnySource.
  MessageLabel label;
  std::span<std::byte> memory;  ///< Lent until the work ends.
  bool may_be_shorter = false;  ///< Takes less than the memory holds, too.
};

/// What a recv has taken.
struct Received {
  int source = kAnySource;  ///< World rank.
  std::size_t bytes = 0;
};

/// A recv under way.
class RecvWork final : public PendingWork {
 public:
  using PendingWork::PendingWork;

  /// Once it has ended well.
  const Received& received() const { return received_; }

  /// Before it ends.
  void set_received(const Received& received) { received_ = received; }

 private:
  Received received_;
};

using RecvWorkPtr = std::shared_ptr<RecvWork>;  // shared as WorkPtr is

/// A message that has come, and that no recv has asked for yet.
struct WaitingMessage {
  int source;  ///< World rank.
  MessageLabel label;
  std::size_t bytes;
};

/// Messages between two ranks of a domain (domains.h), which a recv takes by tag and source.
///
/// A recv takes the oldest message of its tag from its source; messages of one (sender, receiver,
/// tag) come in order. Types are compared, and sizes: where they differ, the domain fails on all
/// its ranks with kInvalidArgument, which names both.
///
/// One of at most kMaxEager bytes is copied, and its send ends at once, while fewer than
/// kMaxWaiting messages that nobody has asked for are under way to a rank. Larger ones move straight
/// into the receiver's memory once a recv has asked for them.
///
/// Threads  safe from any thread.
class Messages {
 public:
  static constexpr std::size_t kMaxEager = 8 * 1024;
  static constexpr std::size_t kMaxWaiting = 64;

  virtual ~Messages() = default;

  /// Errors  kInvalidArgument where there is no such rank.
  virtual WorkPtr send(const MessageToSend& message) = 0;
  virtual RecvWorkPtr recv(const MessageToReceive& message) = 0;

  /// Withdraws a recv that no message has come for: its work fails with kCancelled, its memory is
  /// free. Returns whether it did; else the recv goes on, or has ended. Blocks shortly.
  virtual bool cancel(const RecvWorkPtr& work) = 0;

  /// Oldest first. Blocks shortly.
  virtual std::vector<WaitingMessage> waiting(Tag domain) = 0;
};

}  // namespace trireme::transport
