#include "trireme/plan/schedule/v_schedules.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "trireme/base/check.h"
#include "trireme/error.h"

namespace trireme::schedule {
namespace {

/// A rank is busy all the time where a microbatch follows another after that: two stages of F, I and W.
constexpr int kPeriod = 6;

/// How a microbatch moves: units from the begin of an action on a rank to that on the next, alternating, and from
/// the end of a way over the ranks to the next one.
struct Moves {
  std::array<int, 2> forward_down, forward_up, input_down, input_up;
  int turn_below, turn_at_loss, turn_back;
};

/// Units on the way to each of the ranks that it goes to.
std::vector<int> way(const std::array<int, 2>& steps, int num_ranks) {
  std::vector<int> units = {0};
  while (std::ssize(units) < num_ranks) {
    units.push_back(units.back() + steps[(units.size() - 1) % 2]);
  }
  return units;
}

/// Begin of an action of the first microbatch.
struct TimedAction {
  int time = 0;
  Action action;
};

/// What a rank does with the first microbatch, F and I.
std::vector<TimedAction> passes(const Moves& moves, int num_ranks, int rank) {
  const int last = num_ranks - 1, above = 2 * num_ranks - 1 - rank;
  const auto forward_down = way(moves.forward_down, num_ranks);
  const auto forward_up = way(moves.forward_up, num_ranks);
  const auto input_down = way(moves.input_down, num_ranks);
  const auto input_up = way(moves.input_up, num_ranks);
  const int up = forward_down[last] + moves.turn_below;
  const int back = up + forward_up[last] + moves.turn_at_loss;
  const int back_up = back + input_down[last] + moves.turn_back;
  return {{forward_down[rank], {ActionKind::kForward, rank, 0}},
          {up + forward_up[last - rank], {ActionKind::kForward, above, 0}},
          {back + input_down[rank], {ActionKind::kBackwardInput, above, 0}},
          {back_up + input_up[last - rank], {ActionKind::kBackwardInput, rank, 0}}};
}

/// The first moment after `time` that falls on `slot` of the period.
int next_at(int time, int slot) {
  const int distance = (slot - time) % kPeriod;
  return time + (distance > 0 ? distance : distance + kPeriod);
}

/// Adds the Ws in the two slots of the period that are left, so that they end soonest.
void add_weights(std::vector<TimedAction>& actions) {
  std::array<bool, kPeriod> is_taken{};
  for (const TimedAction& action : actions) {
    bool& taken = is_taken[action.time % kPeriod];
    TRIREME_CHECK(!taken, "two actions of a block at one time");
    taken = true;
  }
  std::vector<int> slots;
  for (int slot = 0; slot < kPeriod; ++slot) {
    if (!is_taken[slot]) slots.push_back(slot);
  }
  const TimedAction above = actions[2], below = actions[3];
  const auto end = [&] { return next_at(above.time, slots[0]) + next_at(below.time, slots[1]); };
  const int as_they_are = end();
  std::swap(slots[0], slots[1]);
  if (as_they_are <= end()) std::swap(slots[0], slots[1]);
  for (const auto& [input, slot] : {std::pair(above, slots[0]), std::pair(below, slots[1])}) {
    actions.push_back(
        {next_at(input.time, slot), {ActionKind::kBackwardWeight, input.action.stage, 0}});
  }
}

Schedule make_v(const Moves& moves, int num_ranks, int num_microbatches) {
  Schedule schedule{2 * num_ranks, num_microbatches, {}};
  for (int stage = 0; stage < schedule.num_stages; ++stage) {
    schedule.positions.push_back(std::min(stage, schedule.num_stages - 1 - stage));
  }
  for (int rank = 0; rank < num_ranks; ++rank) {
    std::vector<TimedAction> block = passes(moves, num_ranks, rank);
    add_weights(block);
    std::vector<TimedAction> all;
    for (int m = 0; m < num_microbatches; ++m) {
      for (TimedAction action : block) {
        action.time += m * kPeriod;
        action.action.microbatch = m;
        all.push_back(action);
      }
    }
    std::ranges::sort(all, {}, &TimedAction::time);
    std::vector<Action>& actions = schedule.ranks.emplace_back();
    for (const TimedAction& action : all) actions.push_back(action.action);
  }
  return schedule;
}

int check_numbers(int num_stages, int num_microbatches) {
  if (num_stages >= 2 && num_stages % 2 == 0 && num_microbatches >= 1) return num_stages / 2;
  throw Error(ErrorKind::kInvalidArgument,
              "a schedule of V shape needs two stages for each rank and a microbatch, got " +
                  std::to_string(num_stages) + " stages and " + std::to_string(num_microbatches) +
                  " microbatches");
}

}  // namespace

// With these distances no rank has two actions at one time, modulo the period.

Schedule make_v_half(int num_stages, int num_microbatches) {
  const int num_ranks = check_numbers(num_stages, num_microbatches);
  const bool is_even = num_ranks % 2 == 0;
  const Moves even{{2, 1}, {2, 1}, {1, 2}, {1, 2}, 3, 1, 1};
  const Moves odd{{1, 1}, {2, 2}, {1, 1}, {2, 2}, 2, 1, 1};
  return make_v(is_even ? even : odd, num_ranks, num_microbatches);
}

Schedule make_v_min(int num_stages, int num_microbatches) {
  const int num_ranks = check_numbers(num_stages, num_microbatches);
  const int turn_at_loss = num_ranks % 3 == 0 ? 3 : 1;
  const Moves moves{{1, 1}, {1, 1}, {1, 1}, {1, 1}, 1, turn_at_loss, 1};
  return make_v(moves, num_ranks, num_microbatches);
}

}  // namespace trireme::schedule
