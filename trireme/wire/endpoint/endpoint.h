#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "trireme/error.h"
#include "trireme/wire/bootstrap/failure.h"
#include "trireme/wire/endpoint/domains.h"
#include "trireme/wire/endpoint/messages.h"
#include "trireme/wire/endpoint/shm/local_peers.h"
#include "trireme/wire/endpoint/work.h"

namespace trireme::transport {

/// Gives memory for a message of that many bytes, lent to the endpoint until the work ends; nothing:
/// the message is dropped as it comes, and the work ends well. Called once, on a thread of the
/// endpoint; must not call the endpoint.
using Placement = std::function<std::optional<std::span<std::byte>>(std::size_t bytes)>;

/// One rank of a world: messages to and from every other rank.
///
/// Messages of one (sender, receiver, tag) arrive in order; others do not wait for each other.
/// Nothing is buffered: a message moves once its receiver has posted a recv for it (rendezvous), so
/// an unposted one holds only the sender's memory.
///
/// After the first failure (a peer lost, a poison) all works of the rank fail, now and later, with
/// the error that came first on any rank, and every peer is told: nobody hangs, everyone prints the
/// same cause. What fails in a domain (domains.h) fails there alone.
///
/// Threads  safe from any thread.
class Endpoint {
 public:
  virtual ~Endpoint() = default;

  virtual int rank() const = 0;
  virtual int world_size() const = 0;

  /// data   lent until the work ends. Done once the receiver's side has taken it off this memory.
  /// peer   another rank or this one; kInvalidArgument if there is none such.
  virtual WorkPtr send(int peer, Tag tag, std::span<const std::byte> data,
                       const Envelope& envelope) = 0;
  WorkPtr send(int peer, Tag tag, std::span<const std::byte> data) {
    return send(peer, tag, data, Envelope{});
  }

  /// Takes the next message of (peer, tag), of any size.
  ///
  /// inspect   sees its envelope first; may be none.
  virtual WorkPtr recv(int peer, Tag tag, Placement place, Inspection inspect) = 0;
  WorkPtr recv(int peer, Tag tag, Placement place) {
    return recv(peer, tag, std::move(place), nullptr);
  }

  virtual Notes& notes() = 0;
  virtual Domains& domains() = 0;
  virtual Messages& messages() = 0;

  /// How often it was called with `key` before: tells users of the same thing apart that come after
  /// each other.
  virtual std::uint64_t count_use(std::uint64_t key) {
    const std::lock_guard lock(uses_mutex_);
    return uses_[key]++;
  }

  /// The caller has failed: every rank's works fail with `error`. The first poison stays. When it
  /// returns, all works of this rank have ended and the peers have been written to.
  virtual void poison(const Error& error) = 0;

  /// This rank ends the world on purpose: `poison` with kCancelled, this rank and the reason.
  void abort(const std::string& reason) { poison(aborted_by(rank(), "the world", reason)); }

  /// Those with whom this rank can share memory; none where that was not wanted.
  virtual LocalPeers& local_peers() = 0;

  /// What moves large messages to ranks that share no memory with this one: `tcp`, `ofi:efa`,
  /// `sim`.
  virtual std::string path() const = 0;

  /// The error that ended this world, for works that may outlive the endpoint.
  virtual std::shared_ptr<Failure> shared_failure() const = 0;

  /// The error that ended this world; nothing while it is well.
  std::optional<Error> failure() const {
    const auto shared = shared_failure();
    auto error = shared->error();
    if (error) shared->mark_given();
    return error;
  }

  /// Orderly end: says goodbye, waits until every peer has too or `deadline` passes (kTimeout,
  /// naming who is missing). Throws the failure of a world that has failed. No call may follow.
  ///
  /// A peer that goes away without goodbye is lost; so is one that says it with works under way, or
  /// that a later work still needs.
  virtual void shutdown(std::chrono::milliseconds deadline) = 0;

 private:
  std::mutex uses_mutex_;
  std::map<std::uint64_t, std::uint64_t> uses_;
};

}  // namespace trireme::transport
