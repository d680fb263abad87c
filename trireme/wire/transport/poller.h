#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "trireme/wire/transport/socket.h"

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

  /// `function` will be run by `wait`.
  void post(std::function<void()> function);

  /// Blocks for an event, a posted function (which it runs) or `deadline`.
  std::vector<Event> wait(Deadline deadline);

 private:
  void clear_wake();
  void run_posted();

  Descriptor epoll_;
  Descriptor wake_;
  std::mutex mutex_;
  std::vector<std::function<void()>> posted_;
};

}  // namespace trireme::transport
