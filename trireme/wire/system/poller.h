#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "trireme/wire/system/socket.h"

namespace trireme::transport {

/// What a thread that serves sockets waits for: their events (epoll, level-triggered) and functions
/// posted by other threads (eventfd).
///
/// Threads  `post` from any thread; the rest confined to the serving thread.
class Poller {
 public:
  struct Event {
    std::uint64_t id;
    bool is_readable;  ///< Or at its end, or broken: reading tells.
    bool is_writable;
  };
  struct Interest {
    bool in_reading = true;
    bool in_writing = false;
    bool operator==(const Interest&) const = default;
  };

  Poller();

  /// Interested in reading, for a start.
  void add(const Descriptor& socket, std::uint64_t id);
  void change(const Descriptor& socket, std::uint64_t id, Interest interest);
  void remove(const Descriptor& socket);

  /// Readable where `wait` has something to do: for who waits for other things too.
  const Descriptor& descriptor() const { return epoll_; }

  /// `function` will be run by `wait` or `close`. False after `close`: it will not.
  bool post(std::function<void()> function);

  /// Blocks for an event, a posted function (which it runs) or `deadline`.
  std::vector<Event> wait(Deadline deadline);

  /// Runs what was posted; nothing can be any more. Last call of the serving thread.
  void close();

 private:
  void clear_wake();
  std::vector<std::function<void()>> take_posted(bool is_last);

  Descriptor epoll_;
  Descriptor wake_;
  std::mutex mutex_;
  std::vector<std::function<void()>> posted_;
  bool is_closed_ = false;
};

}  // namespace trireme::transport
