#pragma once

#include <algorithm>
#include <cstdint>

namespace trireme::transport::internal {

/// What a connection may carry of messages before its receiver has said more.
inline constexpr std::uint64_t kFirstGrant = 64 * 1024;

/// How much data may be on its way to a rank. Many that send to one at once would else fill the
/// queue of its link, and what it says to others in turn would wait behind theirs: so the peers with
/// a message under way share a window, enough for 10 GB/s over 50 us.
///
/// Threads  confined to the progress thread.
class Window {
 public:
  void begin_message() { ++num_messages_; }
  void end_message() { --num_messages_; }

  /// Bytes for each of those.
  std::uint64_t share() const {
    constexpr std::uint64_t kWindow = 512 * 1024;
    return std::max(kFirstGrant, kWindow / std::max<std::uint64_t>(1, num_messages_));
  }

 private:
  std::uint64_t num_messages_ = 0;  ///< Under way to this rank.
};

/// The receiver's side of a connection: what it has granted, counted from the connection's start.
class Grant {
 public:
  /// More of a message has come; false where it is more than was granted.
  bool take(std::uint64_t bytes) {
    received_ += bytes;
    return received_ <= granted_;
  }

  /// Whether it is time to grant more, so that `window` bytes may follow; then `granted` says it.
  bool renew(std::uint64_t window) {
    if (granted_ - received_ > window / 2) return false;
    granted_ = received_ + window;
    return true;
  }

  std::uint64_t granted() const { return granted_; }

 private:
  std::uint64_t granted_ = kFirstGrant;
  std::uint64_t received_ = 0;
};

}  // namespace trireme::transport::internal
