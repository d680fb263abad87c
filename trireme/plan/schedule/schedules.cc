#include "trireme/plan/schedule/schedules.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <utility>

#include "trireme/error.h"
#include "trireme/plan/schedule/v_schedules.h"

namespace trireme::schedule {
namespace {

[[noreturn]] void refuse(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, problem);
}

/// What every generator asks of its numbers; the number of ranks.
int check_shape(int num_stages, int num_microbatches, int stages_per_rank) {
  if (num_stages < 1 || num_microbatches < 1) {
    refuse("a schedule needs at least one stage and one microbatch, got " +
           std::to_string(num_stages) + " and " + std::to_string(num_microbatches));
  }
  if (stages_per_rank < 1 || num_stages % stages_per_rank != 0) {
    refuse(std::to_string(num_stages) + " stages cannot be dealt out, " +
           std::to_string(stages_per_rank) + " to a rank; make their number a multiple");
  }
  return num_stages / stages_per_rank;
}

/// Sizes of the rounds of `make_interleaved`: p microbatches or, where p does not divide them, some more.
std::vector<int> round_sizes(int num_microbatches, int num_ranks) {
  const int num_rounds = std::max(num_microbatches / num_ranks, 1);
  std::vector<int> sizes(num_rounds, num_microbatches / num_rounds);
  for (int i = 0; i < num_microbatches % num_rounds; ++i) ++sizes[i];
  return sizes;
}

/// A rank's actions of one kind in `make_interleaved`: a round of each of its stages in turn.
std::vector<Action> rounds(const Schedule& schedule, int rank, ActionKind kind) {
  const int num_ranks = static_cast<int>(schedule.ranks.size());
  const int last = schedule.num_stages - num_ranks + rank;
  std::vector<Action> actions;
  int begin = 0;
  for (const int size : round_sizes(schedule.num_microbatches, num_ranks)) {
    const int end = begin + size;
    for (int first = rank; first <= last; first += num_ranks) {
      const int stage = kind == ActionKind::kForward ? first : last - (first - rank);
      for (int m = begin; m < end; ++m) actions.push_back({kind, stage, m});
    }
    begin = end;
  }
  return actions;
}

}  // namespace

Schedule make_simple(int num_stages, int num_microbatches, int stages_per_rank) {
  const int num_ranks = check_shape(num_stages, num_microbatches, stages_per_rank);
  Schedule schedule{num_stages, num_microbatches, {}};
  for (int rank = 0; rank < num_ranks; ++rank) {
    std::vector<Action> actions;
    const auto run_all = [&](ActionKind kind, int stage) {
      for (int m = 0; m < num_microbatches; ++m) actions.push_back({kind, stage, m});
    };
    for (int stage = rank; stage < num_stages; stage += num_ranks) {
      run_all(ActionKind::kForward, stage);
    }
    for (int stage = num_stages - num_ranks + rank; stage >= 0; stage -= num_ranks) {
      run_all(ActionKind::kBackward, stage);
    }
    schedule.ranks.push_back(std::move(actions));
  }
  return schedule;
}

namespace {

/// How far ranks run ahead.
struct Pace {
  int ahead =
      1;  ///< Times as many forwards before the first backward as have to; 1 with several stages on a rank.
  int active = 0;  ///< Microbatches that may be; 0: any number.

  /// Actions that may follow one before what ended that, of `wanted`.
  int limited(int wanted, int stages_per_rank) const {
    if (active == 0) return wanted;
    return static_cast<int>(
        std::min<std::int64_t>(wanted, std::int64_t{active} * stages_per_rank - 1));
  }
};

/// Forwards of a rank before its first backward comes with one.
int warmup_of(int rank, int num_ranks, int stages_per_rank, int round, const Pace& pace) {
  // Until the first backward is back from the last stage, only forwards are ready.
  const int distance = num_ranks - 1 - rank;
  if (stages_per_rank == 1) return pace.limited(pace.ahead * distance, 1);
  // The first of them is behind those of all stages before it.
  const int least = (stages_per_rank - 1) * round;
  return std::max(pace.limited(2 * distance + least, stages_per_rank), least);
}

Schedule interleave(int num_stages, int num_microbatches, int stages_per_rank, const Pace& pace) {
  const int num_ranks = check_shape(num_stages, num_microbatches, stages_per_rank);
  Schedule schedule{num_stages, num_microbatches, {}};
  schedule.ranks.resize(num_ranks);
  const int round = round_sizes(num_microbatches, num_ranks).front();
  for (int rank = 0; rank < num_ranks; ++rank) {
    const std::vector<Action> forwards = rounds(schedule, rank, ActionKind::kForward);
    const std::vector<Action> backwards = rounds(schedule, rank, ActionKind::kBackward);
    const int warmup = warmup_of(rank, num_ranks, stages_per_rank, round, pace);
    std::vector<Action>& actions = schedule.ranks[rank];
    auto backward = backwards.begin();
    for (std::size_t f = 0; f < forwards.size(); ++f) {
      actions.push_back(forwards[f]);
      if (std::cmp_greater_equal(f, warmup)) actions.push_back(*backward++);
    }
    actions.insert(actions.end(), backward, backwards.end());
  }
  return schedule;
}

/// Ws come `ahead` times as many Is behind theirs as the rank's number says, where so many microbatches may be active.
Schedule split_backwards(int num_stages, int num_microbatches, int stages_per_rank,
                         const Pace& pace) {
  Schedule schedule = interleave(num_stages, num_microbatches, stages_per_rank, pace);
  const auto num_ranks = static_cast<int>(schedule.ranks.size());
  const int round = round_sizes(num_microbatches, num_ranks).front();
  for (int rank = 0; rank < num_ranks; ++rank) {
    const int warmup = warmup_of(rank, num_ranks, stages_per_rank, round, pace);
    const int behind = pace.limited(warmup + pace.ahead * rank, stages_per_rank) - warmup;
    std::vector<Action> actions;
    std::deque<Action> waiting;
    for (const Action& action : schedule.ranks[rank]) {
      const auto [kind, stage, m] = action;
      const bool is_backward = kind == ActionKind::kBackward;
      actions.push_back(is_backward ? Action{ActionKind::kBackwardInput, stage, m} : action);
      if (!is_backward) continue;
      waiting.push_back({ActionKind::kBackwardWeight, stage, m});
      if (std::cmp_less_equal(waiting.size(), behind)) continue;
      actions.push_back(waiting.front());
      waiting.pop_front();
    }
    actions.insert(actions.end(), waiting.begin(), waiting.end());
    schedule.ranks[rank] = std::move(actions);
  }
  return schedule;
}

}  // namespace

Schedule make_interleaved(int num_stages, int num_microbatches, int stages_per_rank,
                          int active_microbatches) {
  return interleave(num_stages, num_microbatches, stages_per_rank, {.active = active_microbatches});
}

Schedule make_zero_bubble(int num_stages, int num_microbatches, int stages_per_rank,
                          int active_microbatches) {
  return split_backwards(num_stages, num_microbatches, stages_per_rank,
                         {.active = active_microbatches});
}

Schedule make_zero_bubble_h2(int num_stages, int num_microbatches, int active_microbatches) {
  return split_backwards(num_stages, num_microbatches, 1,
                         {.ahead = 2, .active = active_microbatches});
}

namespace {

struct Entry {
  std::string_view name;
  Schedule (*make)(int num_stages, int num_microbatches, int stages_per_rank, int active);
  int stages_per_rank = 0;  ///< The only number that it can have; 0: any.
};

constexpr std::array kSchedules = {
    Entry{"simple", [](int p, int m, int v, int) { return make_simple(p, m, v); }},
    Entry{"interleaved", make_interleaved},
    Entry{"zero_bubble", make_zero_bubble},
    Entry{"zero_bubble_h2",
          [](int p, int m, int, int active) { return make_zero_bubble_h2(p, m, active); }, 1},
    Entry{"v_half", [](int p, int m, int, int) { return make_v_half(p, m); }, 2},
    Entry{"v_min", [](int p, int m, int, int) { return make_v_min(p, m); }, 2},
};

bool can_have(const Entry& entry, int stages_per_rank) {
  return entry.stages_per_rank == 0 || entry.stages_per_rank == stages_per_rank;
}

const Entry& entry_of(std::string_view name) {
  std::string known;
  for (const Entry& entry : kSchedules) {
    if (entry.name == name) return entry;
    known += std::string(entry.name) + ", ";
  }
  refuse("there is no schedule '" + std::string(name.substr(0, 80)) + "'; choose one of " + known +
         "or custom, with actions of your own");
}

}  // namespace

Schedule make_schedule(std::string_view name, int num_stages, int num_microbatches,
                       int stages_per_rank) {
  return make_schedule(layout::ScheduleChoice{.name = std::string(name), .parameters = {}},
                       num_stages, num_microbatches, stages_per_rank);
}

namespace {

/// 0: any number. Errors of `make_schedule`.
int active_microbatches(const layout::ScheduleChoice& choice) {
  int active = 0;
  for (const auto& [parameter, number] : choice.parameters) {
    if (parameter != kActiveMicrobatches) {
      refuse("the schedule '" + choice.name + "' has no parameter '" + parameter +
             "'; leave it out");
    }
    if (number < 1 || number > std::numeric_limits<int>::max()) {
      refuse("active_microbatches is a number from 1 on, not " + std::to_string(number));
    }
    active = static_cast<int>(number);
  }
  return active;
}

}  // namespace

Schedule make_schedule(const layout::ScheduleChoice& choice, int num_stages, int num_microbatches,
                       int stages_per_rank) {
  const Entry& entry = entry_of(choice.name);
  check_shape(num_stages, num_microbatches, stages_per_rank);
  if (!can_have(entry, stages_per_rank)) {
    const std::string stages = entry.stages_per_rank == 1 ? " stage" : " stages";
    refuse("the schedule '" + choice.name + "' has " + std::to_string(entry.stages_per_rank) +
           stages + " on every rank, not " + std::to_string(stages_per_rank) +
           "; see --stages-per-rank");
  }
  const int active = active_microbatches(choice);
  Schedule schedule = entry.make(num_stages, num_microbatches, stages_per_rank, 0);
  if (active == 0 || most_active(schedule) <= active) return schedule;
  schedule = entry.make(num_stages, num_microbatches, stages_per_rank, active);
  if (const int most = most_active(schedule); most > active) {
    refuse("the schedule '" + choice.name + "' of " + std::to_string(num_stages) + " stages and " +
           std::to_string(num_microbatches) + " microbatches holds " + std::to_string(most) +
           " of these on a rank, and active_microbatches says " + std::to_string(active) +
           "; ask for " + std::to_string(most) +
           " or more, or take interleaved with one stage a rank, which does with 1");
  }
  return schedule;
}

int most_active(const Schedule& schedule) {
  const auto num_ranks = static_cast<int>(schedule.ranks.size());
  const int each = schedule.num_stages / num_ranks;
  int most = 0;
  for (const std::vector<Action>& actions : schedule.ranks) {
    int now = 0;
    for (const Action& action : actions) {
      if (action.kind == ActionKind::kForward) most = std::max(most, ++now);
      if (action.kind == ActionKind::kBackward || action.kind == ActionKind::kBackwardWeight) --now;
    }
  }
  return (most + each - 1) / each;
}

bool splits_backwards(const Schedule& schedule) {
  return std::ranges::any_of(schedule.ranks, [](const std::vector<Action>& actions) {
    return std::ranges::any_of(
        actions, [](const Action& action) { return action.kind == ActionKind::kBackwardWeight; });
  });
}

int least_stages_per_rank(std::string_view name) {
  return name.empty() ? 1 : std::max(entry_of(name).stages_per_rank, 1);
}

Schedule forwards(const std::vector<int>& positions, int num_microbatches, int round) {
  Schedule schedule{static_cast<int>(positions.size()), num_microbatches, {}, positions};
  schedule.ranks.resize(static_cast<std::size_t>(*std::ranges::max_element(positions)) + 1);
  for (int begin = 0; begin < num_microbatches; begin += round) {
    const int end = std::min(begin + round, num_microbatches);
    for (int stage = 0; stage < schedule.num_stages; ++stage) {
      std::vector<Action>& actions = schedule.ranks[positions[stage]];
      for (int m = begin; m < end; ++m) actions.push_back({ActionKind::kForward, stage, m});
    }
  }
  return schedule;
}

std::vector<std::string> schedule_names(int stages_per_rank) {
  std::vector<std::string> names;
  for (const Entry& entry : kSchedules) {
    if (stages_per_rank == 0 || can_have(entry, stages_per_rank)) names.emplace_back(entry.name);
  }
  return names;
}

}  // namespace trireme::schedule
