#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::schedule {

/// What a rank does with one microbatch in one stage.
enum class ActionKind : std::uint8_t {
  kForward,         ///< F: run the stage, keep what the backward needs.
  kBackward,        ///< B: both gradients at once, B = I + W.
  kBackwardInput,   ///< I: gradient of the stage's inputs, the part the stage before waits for.
  kBackwardWeight,  ///< W: gradient of the stage's parameters, free to run later.
};

/// One entry of a schedule. Text form: stage, kind, microbatch, as in `2F0`.
struct Action {
  ActionKind kind = ActionKind::kForward;
  int stage = 0;
  int microbatch = 0;  ///< Of the replica, from 0.

  auto operator<=>(const Action&) const = default;
};

std::string to_text(const Action& action);

/// Inverse of `to_text`. Throws kInvalidArgument, naming the text, where it is not of that form.
Action parse_action(std::string_view text);

/// A pipeline schedule: for each pipeline rank the actions it runs, in order. It says nothing about
/// time. A rank may have several stages (virtual stages).
///
/// Invariants, proved by `check` (schedule_check.h): each (stage, microbatch) has one F, and after it one B,
/// or one I and later one W, all on the stage's rank; forwards and backwards of a stage each come
/// in microbatch order, which is the order of the lane fold; run in this order, no rank waits for
/// ever.
struct Schedule {
  int num_stages = 0;
  int num_microbatches = 0;
  std::vector<std::vector<Action>> ranks;
  std::vector<int> positions = {};  ///< By stage: the rank that runs it; empty: s mod ranks.size().

  int rank_of(int stage) const {
    return positions.empty() ? stage % static_cast<int>(ranks.size()) : positions[stage];
  }
  bool operator==(const Schedule&) const = default;
};

}  // namespace trireme::schedule
