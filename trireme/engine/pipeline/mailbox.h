#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "trireme/plan/schedule/step_program.h"
#include "trireme/wire/collectives/channel.h"
#include "trireme/wire/endpoint/watch.h"

namespace trireme::pipeline {

/// The messages of a step over one rank's channels: receives ahead, keeps what is being sent. Between two stages of
/// the rank a message waits here.
///
/// At most schedule::kReceivedAhead messages of a channel are received before they are asked for;
/// that and what the rank has sent and nobody has taken yet is all that it holds: what the plan
/// counts (simulate::held_messages). Confined to one thread.
class Mailbox {
 public:
  /// endpoint   outlives the mailbox.
  Mailbox(const schedule::StepProgram& program, int rank, transport::Endpoint& endpoint,
          transport::WatchOptions watch);

  /// has   whether a microbatch has messages in this step; -1: messages that are about none.
  void begin_step(const std::function<bool(int microbatch)>& has);

  /// The next message of a channel, a u8 tensor.
  at::Tensor take(int channel, const ErrorContext& place);

  /// Posts a message; `message` is kept until it is received.
  void send(int channel, at::Tensor message);

  /// Waits until fewer than `most` messages sent over a channel have not been received.
  void make_room(int channel, int most, const ErrorContext& place);

  /// As these for memory that exists.
  void take_into(int channel, std::span<std::byte> memory, const ErrorContext& place);
  void send_from(int channel, std::span<const std::byte> memory);

  /// Lets go of what was sent and has been received.
  void drop_received();

  /// Waits until everything that was sent has been received.
  void flush(const ErrorContext& place);

  /// Bytes of values and gradients that are held now: sent and not received, or received ahead.
  std::int64_t held_bytes() const;

  /// The most that it was since the step began.
  std::int64_t most_held_bytes() const { return most_held_bytes_; }

  const transport::WatchOptions& watch() const { return watch_; }

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
    std::vector<int> microbatches;  ///< Of the messages that `take` asks for in a whole step.
    int num_messages = 0;           ///< Of this step.
    int num_posted = 0;
    std::deque<Posted> posted;
    std::deque<at::Tensor> own;  ///< Of this rank.
  };

  bool is_own(int channel) const { return channels_[channel].peer() == endpoint_.rank(); }
  void post(int channel);
  void wait(transport::Work& work, int channel, const ErrorContext& place);
  void note_held();

  transport::Endpoint& endpoint_;
  transport::WatchOptions watch_;
  std::vector<collectives::PeerChannel> channels_;
  std::vector<Inbox> inboxes_;
  std::deque<Sent> sent_;
  std::int64_t most_held_bytes_ = 0;
};

}  // namespace trireme::pipeline
