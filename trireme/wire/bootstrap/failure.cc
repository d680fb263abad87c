#include "trireme/wire/bootstrap/failure.h"

#include "trireme/wire/system/thread.h"

namespace trireme::transport {

std::string ranks_text(std::span<const int> ranks) {
  if (ranks.empty()) return "no rank";
  std::string text;
  for (const int rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return (ranks.size() == 1 ? "rank " : "ranks ") + text;
}

Error lost_rank(int rank, const std::string& why) {
  Error error(ErrorKind::kPeerLost, "rank " + std::to_string(rank) + " is lost: " + why);
  error.add({.peer = rank});
  return error;
}

Error aborted_by(int rank, const std::string& what, const std::string& reason) {
  Error error(ErrorKind::kCancelled,
              "rank " + std::to_string(rank) + " has ended " + what + ": " + reason);
  error.add({.peer = rank});
  return error;
}

bool Failure::set(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (error_) return false;
  error_ = error;
  is_set_.store(true, std::memory_order_release);
  return true;
}

std::optional<Error> Failure::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

void Failure::mark_given() {
  if (LibraryThread::is_current()) return;
  if (world_) world_->mark_given();
  const std::lock_guard lock(mutex_);
  is_given_ = is_given_ || error_.has_value();
}

bool Failure::is_given() const {
  const std::lock_guard lock(mutex_);
  return is_given_;
}

}  // namespace trireme::transport
