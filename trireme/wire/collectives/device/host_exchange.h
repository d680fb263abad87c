#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "trireme/wire/collectives/call.h"
#include "trireme/wire/collectives/members.h"
#include "trireme/wire/collectives/scratch.h"

namespace trireme::collectives {

/// What the ranks of a group on GPUs tell each other over the endpoint, from memory of the host.
/// Every call blocks until the others have made it too; one that fails ends the group, and
/// throws.
///
/// Threads  caller-synchronised.
class HostExchange {
 public:
  /// members   their messages are not those of the group's other operations.
  explicit HostExchange(const Members& members);

  /// No call may follow.
  void close();

  /// Every rank's equal part of `all` goes to all others; the own one is there.
  void all_gather(std::span<std::byte> all);

  /// data = that of group rank 0.
  void broadcast(std::span<std::byte> data);

  /// kInvalidArgument on all ranks where they are about to do different things, kCorruptData where
  /// only their hashes differ.
  void compare(const Description& description);

 private:
  void run(Description description, const std::function<void(Call&)>& body);

  const Members group_;
  const Members members_;
  Scratch scratch_;
  std::int64_t num_calls_ = 0;
};

}  // namespace trireme::collectives
