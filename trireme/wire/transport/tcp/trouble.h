#pragma once

#include <chrono>
#include <optional>

#include "trireme/base/error.h"
#include "trireme/wire/transport/socket.h"

namespace trireme::transport::internal {

/// The first error of a carrier with a peer, held back for 1 s: a rank that ends or fails says why
/// on its connection, and that text is the one that all ranks print.
class Trouble {
 public:
  void note(const Error& error) {
    if (!error_) error_ = error;
    if (!until_) until_ = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  }

  /// Throws it when its time has come.
  void check() const {
    if (error_ && std::chrono::steady_clock::now() >= *until_) throw Error(*error_);
  }

  /// When `check` is to be called at the latest.
  Deadline due() const { return until_.value_or(Deadline::max()); }

 private:
  std::optional<Error> error_;
  std::optional<Deadline> until_;
};

}  // namespace trireme::transport::internal
