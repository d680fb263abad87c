#pragma once

#include <chrono>
#include <optional>

#include "trireme/base/error.h"
#include "trireme/wire/transport/socket.h"

namespace trireme::transport::internal {

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
