#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "trireme/base/log.h"
#include "trireme/plan/schedule/step_program.h"
#include "trireme/wire/channel/channel.h"

namespace trireme::pipeline {

struct WatchOptions {
  std::chrono::milliseconds deadline{300'000};   ///< A longer wait is an error.
  std::chrono::milliseconds warn_after{20'000};  ///< A longer one is logged, again and again.
  Logger logger{LogLevel::kInfo};
};

/// What a rank is doing, for errors and the watchdog.
struct Place {
  int rank = 0;
  std::int64_t step = 0;
  std::int64_t microbatch = -1;  ///< Global; -1 where none.
  std::string operation;
};

/// A work that somebody waits for.
struct Awaited {
  transport::Work& work;
  transport::Endpoint& endpoint;              ///< Whose work it is.
  std::function<std::vector<int>()> missing;  ///< Ranks that it waits for at the moment.
  std::chrono::milliseconds grace{0};  ///< Beyond the deadline, where the work has one of its own.
};

/// A message from or to `peer`.
Awaited message_work(transport::Work& work, transport::Endpoint& endpoint, int peer);

/// Waits under the watchdog's eye: logs for whom `place` waits, throws kTimeout at the deadline or
/// the work's own error, each with the place. Before kTimeout the endpoint is poisoned: however
/// this ends, the work has too, and what was lent to it may go.
void await(const Awaited& awaited, const WatchOptions& watch, const Place& place);

/// The messages of a step over one rank's channels: receives ahead, keeps what is being sent.
///
/// At most kAhead messages of a channel are received before they are asked for; that and what the
/// rank has sent and nobody has taken yet is all that it holds. Confined to one thread.
class Mailbox {
 public:
  static constexpr int kAhead = 2;

  /// endpoint   outlives the mailbox.
  Mailbox(const schedule::StepProgram& program, int rank, transport::Endpoint& endpoint,
          WatchOptions watch);

  void begin_step();

  /// The next message of a channel, a u8 tensor.
  at::Tensor take(int channel, const Place& place);

  /// Posts a message; `message` is kept until it is received.
  void send(int channel, at::Tensor message);

  /// As these for memory that exists.
  void take_into(int channel, std::span<std::byte> memory, const Place& place);
  void send_from(int channel, std::span<const std::byte> memory);

  /// Waits until everything that was sent has been received.
  void flush(const Place& place);

  const WatchOptions& watch() const { return watch_; }

 private:
  struct Posted {
    transport::WorkPtr work;
    std::shared_ptr<at::Tensor> message;  // shared with the endpoint's thread, which makes it
  };
  struct Sent {
    transport::WorkPtr work;
    at::Tensor message;
    int channel;
  };
  struct Inbox {
    int num_messages = 0;  ///< Of a step, those that `take` asks for.
    int num_posted = 0;
    std::deque<Posted> posted;
  };

  void post(int channel);
  void wait(transport::Work& work, int channel, const Place& place);
  void drop_received();

  transport::Endpoint& endpoint_;
  WatchOptions watch_;
  std::vector<channel::Channel> channels_;
  std::vector<Inbox> inboxes_;
  std::deque<Sent> sent_;
};

}  // namespace trireme::pipeline
