#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "trireme/wire/collectives/members.h"

namespace trireme::collectives {

/// Calls that one rank has refused for a mistake of its own (a scale that is no number, elements that
/// are not whole) while the others make them, and wait for it. By notes, which need no receiver.
///
/// A call that is made well after all takes the refusal back: it does no harm to the next one.

/// sequence   of the operation that the call would have been.
void tell_refusal(const Members& members, std::int64_t sequence, const std::string& problem);
void retract_refusal(const Members& members);

/// What an operation that waits knows of them. Caller-synchronised.
class RefusalWatch {
 public:
  /// A refusal that stands for so long is not taken back any more.
  static constexpr std::chrono::milliseconds kPatience{1000};

  /// Throws kInvalidArgument where one of the world ranks `awaited` has refused the operation and
  /// made no call since.
  void check(const Members& members, std::span<const int> awaited, std::int64_t sequence);

 private:
  std::optional<std::chrono::steady_clock::time_point> since_;
};

}  // namespace trireme::collectives
