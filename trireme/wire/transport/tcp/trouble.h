#pragma once

#include <chrono>
#include <optional>

#include "trireme/base/error.h"
#include "trireme/wire/transport/socket.h"

namespace trireme::transport::internal {

/// The first error of a carrier with a peer, held back for 1 s: a rank that ends or fails says why
/// on its connection, and that text is the one that all ranks print.
///
/// Caller-synchronised.
class Trouble {
 public:
  void note(const Error& error) {
    if (!held_) held_ = {error, std::chrono::steady_clock::now() + std::chrono::seconds(1)};
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
