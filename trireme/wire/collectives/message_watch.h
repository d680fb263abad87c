#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/wire/collectives/members.h"
#include "trireme/wire/system/thread.h"

namespace trireme::collectives {

/// The deadlines of a group's messages, which hold whether somebody waits for them or not: a message
/// that has not moved by then fails the group with kTimeout, naming its peer, its tag and messages
/// that nobody has asked for.
///
/// Threads  safe from any thread. One of its own, from the first message on.
class MessageWatch {
 public:
  /// members   outlives it.
  explicit MessageWatch(const Members& members) : members_(members) {}
  ~MessageWatch();

  /// A message under way.
  struct Message {
    transport::WorkPtr work;
    std::vector<int> peers;      ///< World ranks: one of them.
    std::string_view operation;  ///< `send` or `recv`.
    std::uint64_t tag;
    std::chrono::milliseconds patience;  ///< Until its deadline.
  };

  void add(Message message);

 private:
  using Clock = std::chrono::steady_clock;

  void serve();
  void forget_ended();
  void fail(const Message& late) const;
  std::string others_text() const;

  const Members& members_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<Clock::time_point, Message> messages_;  ///< By deadline; some have ended.
  std::size_t forget_at_ = 1024;                        ///< Messages.
  bool is_stopping_ = false;
  std::optional<transport::LibraryThread> thread_;
};

}  // namespace trireme::collectives
