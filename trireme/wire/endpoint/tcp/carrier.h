#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "trireme/error.h"
#include "trireme/wire/endpoint/work.h"
#include "trireme/wire/system/socket.h"

namespace trireme::transport::internal {

/// Moves the payloads of large messages beside the connections of an endpoint, which keep all the
/// rest: credits, envelopes, placements, failures, goodbye (peer.h).
///
/// Threads  confined to the progress thread.
class Carrier {
 public:
  virtual ~Carrier() = default;

  /// Whether a message of that size is to be offered to its receiver, not written to the
  /// connection.
  virtual bool takes(std::size_t bytes) const = 0;

  /// Expects a payload of the size of `memory`, which is lent until `work` ends. Returns the key
  /// under which `peer` is to send it.
  virtual std::uint64_t receive(int peer, std::span<std::byte> memory, PendingWorkPtr work) = 0;

  /// data   lent until `work` ends. key: the receiver's.
  virtual void send(int peer, std::uint64_t key, std::span<const std::byte> data,
                    PendingWorkPtr work) = 0;

  /// Whether a payload to or from `peer` is under way.
  virtual bool has_work(int peer) const = 0;

  /// Goes on as far as possible without blocking; ends the works that are done. Throws what went
  /// wrong with a peer, unless its connection has told within 1 s.
  virtual void progress() = 0;

  /// Readable where `progress` has something to do; not open where nothing tells.
  virtual const Descriptor& descriptor() const = 0;

  /// Asked right before each wait: when `progress` is to be called at the latest.
  virtual Deadline next_progress() = 0;

  /// Lets go of all memory; `works` gets the works. Nothing moves afterwards.
  virtual void abandon(std::vector<PendingWorkPtr>& works) = 0;
};

/// The first error of a carrier with a peer, held back for a while: a rank that ends or fails says
/// why on its connection, and that text is the one that all ranks print.
///
/// Caller-synchronised.
class Trouble {
 public:
  /// hold   shorter where what the connection has to say must be there already.
  void note(const Error& error, std::chrono::milliseconds hold = std::chrono::seconds(1)) {
    if (!held_) held_ = {error, std::chrono::steady_clock::now() + hold};
  }

  /// Throws it when its time has come.
  void check() const {
    if (std::chrono::steady_clock::now() >= due()) throw Error(held_->error);
  }

  /// When `check` is to be called at the latest.
  Deadline due() const { return held_ ? held_->until : Deadline::max(); }

 private:
  struct Held {
    Error error;
    Deadline until;
  };
  std::optional<Held> held_;
};

}  // namespace trireme::transport::internal
