#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trireme/wire/collectives/flight/recorder.h"
#include "trireme/wire/collectives/members.h"
#include "trireme/wire/collectives/waits.h"
#include "trireme/wire/endpoint/endpoint.h"

namespace trireme::collectives {

/// Memory that is kept from operation to operation and grows to the largest need.
///
/// Threads  caller-synchronised.
class Scratch {
 public:
  /// 64-byte-aligned, with any content. What was returned before is invalid.
  std::span<std::byte> at_least(std::size_t bytes) {
    if (bytes > size_) {
      memory_.reset();
      size_ = 0;
      memory_.reset(static_cast<std::byte*>(::operator new(bytes, kAlignment)));
      size_ = bytes;
    }
    return {memory_.get(), bytes};
  }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete(memory, kAlignment); }
  };

  std::unique_ptr<std::byte, Free> memory_;
  std::size_t size_ = 0;
};

/// One operation under way: its messages, what it still waits for, and its scratch memory. All
/// peers are group ranks, all messages between two ranks in one direction are in order.
///
/// Every message says which operation it is of; the receiver compares before it takes the data. A
/// call that has waited for 200 ms tells all members what it does, and compares what those have
/// told that wait as well. So ranks that call different things get kInvalidArgument, also where
/// they would not talk to each other. Whoever notices a difference first hears what all members do,
/// for half a second or so, so that all say the same.
///
/// All waits together last until the deadline, which counts from the construction.
///
/// Threads  confined to the group's thread, but for `missing`.
class Call {
 public:
  /// What a rank has of its own in a call.
  struct Own {
    double scale = 1;  ///< Of a scaled sum, of this rank's elements.
    std::optional<std::chrono::milliseconds> deadline;  ///< Of all waits; nothing: the group's.
  };

  /// members, scratch   outlive the call.
  Call(const Members& members, const Description& description, Scratch& scratch, const Own& own);
  Call(const Members& members, const Description& description, Scratch& scratch)
      : Call(members, description, scratch, Own{}) {}

  /// The operation has ended: members that were told that it waits hear that it does no more.
  void retract() {
    notes_.retract();
    other_waits_.retract(members_);
  }

  const Members& members() const { return members_; }
  const Description& description() const { return description_; }
  Scratch& scratch() { return scratch_; }

  /// For operations that carry no data: like all memory of messages, it outlives them.
  std::span<std::byte> token() { return token_; }

  /// By group rank, of those of whom a message has come: what their elements are multiplied by.
  std::vector<double> scales() const;

  /// Start a message. id: differs between those under way; `wait` gives it back.
  void send(int peer, std::span<const std::byte> data, std::size_t id);
  void recv(int peer, std::span<std::byte> memory, std::size_t id);

  /// Messages that have ended since the last call, and do not wait.
  std::vector<std::size_t> take_ended();

  /// Blocks until one at least has ended.
  ///
  /// awaited   group ranks that the operation waits for, for `missing`.
  /// Errors    kTimeout, naming those; what ended the world; kInvalidArgument for ranks that call
  ///           something else.
  std::vector<std::size_t> wait(const std::vector<int>& awaited);

  /// Waits for the end of what is under way, whatever it is. Only after the endpoint has failed,
  /// when works end at once.
  void drain() noexcept;

  /// World ranks that the wait under way is for, but for those that wait for others in turn; empty
  /// where there is none. Any thread.
  std::vector<int> missing() const;

  /// For the peer whose message ended it.
  const LongestWait& longest_wait() const { return longest_wait_; }

  /// For errors: this rank, group, operation and sequence.
  ErrorContext context() const;

 private:
  using Clock = std::chrono::steady_clock;

  /// A message under way.
  struct Message {
    transport::WorkPtr work;
    int peer;
  };

  void start(Message message, std::size_t id);
  Error late() const;
  void note_wait(Clock::time_point begin, int peer);
  void finish(const std::vector<std::size_t>& ids);
  bool inspect(int peer, const transport::Envelope& envelope);
  bool is_waiting(int world_rank) const;
  bool hear();
  void refuse_if_different();
  void refuse() const;
  bool has_difference() const;
  void set_awaited(const std::vector<int>& peers);

  const Members& members_;
  const Description description_;
  const transport::Envelope own_bytes_;
  const std::chrono::milliseconds patience_;  ///< From the construction to the deadline.
  const Clock::time_point deadline_;
  const std::shared_ptr<transport::Completions> completions_;  // shared with the works
  std::map<std::size_t, Message> works_;                       ///< Under way.
  LongestWait longest_wait_;
  WaitNotes notes_;
  RefusalWatch refusals_;
  OtherWaits other_waits_;
  mutable std::mutex mutex_;  // for what follows
  std::vector<int> awaited_;  ///< World ranks.
  std::vector<double> scales_;
  /// What members do, by group rank, as far as it is known.
  std::map<int, Description> heard_;
  std::array<std::byte, 1> token_{};
  Scratch& scratch_;
};

}  // namespace trireme::collectives
