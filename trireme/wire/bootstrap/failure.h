#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "trireme/error.h"

namespace trireme::transport {

/// `rank 1`, `ranks 1, 2`, `no rank`.
std::string ranks_text(std::span<const int> ranks);

/// kPeerLost `rank 2 is lost: <why>`: the same text on whichever rank notices.
Error lost_rank(int rank, const std::string& why);

/// kCancelled `rank 2 has ended the world: <reason>`; what: that, or `group 'data 1'`.
Error aborted_by(int rank, const std::string& what, const std::string& reason);

/// What ended a world, or a domain of it, as one rank sees it. The first error stays.
///
/// Shared by an endpoint and its works, which may outlive it.
/// Threads  safe from any thread.
class Failure {
 public:
  /// world   of which this is a part (endpoint/domains.h), or null.
  explicit Failure(std::shared_ptr<Failure> world = nullptr) : world_(std::move(world)) {}

  /// Returns whether it was the first.
  bool set(const Error& error);

  /// Whether there is an error, at the cost of one load.
  bool is_set() const { return is_set_.load(std::memory_order_acquire); }

  /// Nothing while all is well.
  std::optional<Error> error() const;

  /// The calling thread has been given the error, of this or of the world. Counts if there is one
  /// and the thread is its owner's, not a LibraryThread.
  void mark_given();

  bool is_given() const;

 private:
  const std::shared_ptr<Failure> world_;  // shared with the endpoint
  std::atomic<bool> is_set_{false};
  mutable std::mutex mutex_;
  std::optional<Error> error_;
  bool is_given_ = false;
};

}  // namespace trireme::transport
