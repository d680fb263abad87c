#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "trireme/wire/collectives/members.h"

namespace trireme::collectives {

/// What the members of a group that have waited for long tell each other: which operation they are
/// in. By notes, which need no receiver.
///
/// Threads  `told_by` from any, the rest caller-synchronised.
class WaitNotes {
 public:
  /// Waits are told after so long.
  static constexpr std::chrono::milliseconds kPatience{200};

  /// members   outlives it.
  explicit WaitNotes(const Members& members) : members_(members) {}

  /// Tells all others; nothing where they have been told already.
  void tell(const transport::Envelope& operation) {
    if (!std::exchange(has_told_, true)) tell_all(operation);
  }

  /// The operation has ended: those who were told hear it.
  void retract() {
    if (std::exchange(has_told_, false)) tell_all({});
  }

  /// What a rank of the world has told that it waits in; nothing where it does not wait any more.
  std::optional<Description> told_by(int world_rank) const {
    const auto note = members_.endpoint.notes().heard(world_rank, members_.tag(Use::kOperation));
    if (!note || *note == transport::Envelope{}) return std::nullopt;
    return parse_description(*note);
  }

  /// Once a difference is known: how long to wait until all have told, so that all name the same
  /// two. Lower ranks lose patience first: then they are the only ones to speak.
  std::chrono::milliseconds resolution() const {
    constexpr std::chrono::milliseconds kFirst{400};
    constexpr std::chrono::milliseconds kStagger{20};
    return kFirst + kStagger * std::min(members_.group_rank, 25);
  }

 private:
  void tell_all(const transport::Envelope& note) const {
    for (int peer = 0; peer < members_.size(); ++peer) {
      if (peer == members_.group_rank) continue;
      members_.endpoint.notes().tell(members_.ranks[peer], members_.tag(Use::kOperation), note);
    }
  }

  const Members& members_;
  bool has_told_ = false;
};

/// For whom this rank waits in an operation, told to those: where they wait for this rank in another
/// group meanwhile, an error can say so. By notes, which need no receiver; the last one of a rank
/// counts, whatever group it is of.
///
/// Caller-synchronised.
class OtherWaits {
 public:
  /// An operation has waited for long. Tells each of the world ranks once.
  void tell(const Members& members, std::string_view operation, std::span<const int> awaited);

  /// It has ended well.
  void retract(const Members& members);

 private:
  std::vector<int> told_;
};

/// kTimeout as `late_error`, with what those ranks wait for in other groups.
Error late_error_with_waits(const Members& members, std::span<const int> awaited,
                            std::chrono::milliseconds deadline);

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
