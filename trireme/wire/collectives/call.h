#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "trireme/wire/collectives/description.h"
#include "trireme/wire/collectives/members.h"
#include "trireme/wire/collectives/scratch.h"
#include "trireme/wire/transport/endpoint.h"

namespace trireme::collectives {

using Hop = Use;

/// One operation under way: its messages, what it still waits for, and its scratch memory. All
/// peers are group ranks. Messages without bytes are left out, on both sides.
///
/// All waits together last until the deadline, which counts from the construction.
///
/// Threads  confined to the group's thread, but for `missing`.
class Call {
 public:
  /// members, scratch   outlive the call.
  Call(const Members& members, const Description& description, Scratch& scratch);

  const Members& members() const { return members_; }

  /// The other ranks, starting behind this one, so that not all send to the same rank at once.
  std::vector<int> peers() const;

  void send(int peer, Hop hop, std::span<const std::byte> data);
  void recv(int peer, Hop hop, std::span<std::byte> memory);

  /// Tells the others what this rank is about to do and hears the same from them. Afterwards all
  /// ranks of the group are in this operation. kInvalidArgument, with the same text on all ranks,
  /// where they differ.
  ///
  /// What is sent before arrives although the sizes may differ: send after it, recv before or
  /// after.
  void agree();

  /// Until all recvs of `hop` from `peer` have ended. Errors: kTimeout, or those of the endpoint.
  void wait_recvs(int peer, Hop hop);

  /// Until everything has ended.
  void wait_all();

  Scratch& scratch() { return scratch_; }

  /// Waits for the end of what is under way, whatever it is. Only after the endpoint has failed,
  /// when works end at once.
  void drain() noexcept;

  /// World ranks that the wait under way is for; empty where there is none. Any thread.
  std::vector<int> missing() const;

  /// For errors: this rank, group, operation and sequence.
  ErrorContext context() const;

 private:
  struct Transfer {
    int peer;
    Hop hop;
    bool is_recv;
    transport::WorkPtr work;
    bool is_awaited = false;
  };

  void add(Transfer transfer);
  template <typename Predicate>
  void wait_where(Predicate is_meant);

  const Members& members_;
  const Description description_;
  const std::chrono::steady_clock::time_point deadline_;
  const std::array<std::byte, kDescriptionBytes> own_bytes_;
  std::vector<std::array<std::byte, kDescriptionBytes>> peer_bytes_;
  mutable std::mutex mutex_;  // for changes of transfers_, which only the group's thread makes
  std::vector<Transfer> transfers_;
  Scratch& scratch_;
};

}  // namespace trireme::collectives
