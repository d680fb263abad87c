#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
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

}  // namespace trireme::collectives
