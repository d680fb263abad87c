#include "trireme/plan/schedule/schedules.h"

#include <algorithm>
#include <array>
#include <deque>
#include <utility>

#include "trireme/error.h"
#include "trireme/plan/schedule/schedule_check.h"
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

/// ahead   how many times as many forwards go before the first backward as have to; 1 with several stages on a rank.
Schedule interleave(int num_stages, int num_microbatches, int stages_per_rank, int ahead) {
  const int num_ranks = check_shape(num_stages, num_microbatches, stages_per_rank);
  Schedule schedule{num_stages, num_microbatches, {}};
  schedule.ranks.resize(num_ranks);
  const int round = round_sizes(num_microbatches, num_ranks).front();
  for (int rank = 0; rank < num_ranks; ++rank) {
    const std::vector<Action> forwards = rounds(schedule, rank, ActionKind::kForward);
    const std::vector<Action> backwards = rounds(schedule, rank, ActionKind::kBackward);
    // Until the first backward is back from the last stage, only forwards are ready.
    const int distance = num_ranks - 1 - rank;
    const int warmup =
        stages_per_rank == 1 ? ahead * distance : 2 * distance + (stages_per_rank - 1) * round;
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

/// Ws come `ahead` times as many Is behind theirs as the rank's number says.
Schedule split_backwards(int num_stages, int num_microbatches, int stages_per_rank, int ahead) {
  Schedule schedule = interleave(num_stages, num_microbatches, stages_per_rank, ahead);
  for (int rank = 0; std::cmp_less(rank, schedule.ranks.size()); ++rank) {
    std::vector<Action> actions;
    std::deque<Action> waiting;
    for (const Action& action : schedule.ranks[rank]) {
      const auto [kind, stage, m] = action;
      const bool is_backward = kind == ActionKind::kBackward;
      actions.push_back(is_backward ? Action{ActionKind::kBackwardInput, stage, m} : action);
      if (!is_backward) continue;
      waiting.push_back({ActionKind::kBackwardWeight, stage, m});
      if (std::cmp_less_equal(waiting.size(), ahead * rank)) continue;
      actions.push_back(waiting.front());
      waiting.pop_front();
    }
    actions.insert(actions.end(), waiting.begin(), waiting.end());
    schedule.ranks[rank] = std::move(actions);
  }
  return schedule;
}

}  // namespace

Schedule make_interleaved(int num_stages, int num_microbatches, int stages_per_rank) {
  return interleave(num_stages, num_microbatches, stages_per_rank, 1);
}

Schedule make_zero_bubble(int num_stages, int num_microbatches, int stages_per_rank) {
  return split_backwards(num_stages, num_microbatches, stages_per_rank, 1);
}

Schedule make_zero_bubble_h2(int num_stages, int num_microbatches) {
  return split_backwards(num_stages, num_microbatches, 1, 2);
}

namespace {

struct Entry {
  std::string_view name;
  Schedule (*make)(int num_stages, int num_microbatches, int stages_per_rank);
  int stages_per_rank = 0;  ///< The only number that it can have; 0: any.
};

constexpr std::array kSchedules = {
    Entry{"simple", make_simple},
    Entry{"interleaved", make_interleaved},
    Entry{"zero_bubble", make_zero_bubble},
    Entry{"zero_bubble_h2", [](int p, int m, int) { return make_zero_bubble_h2(p, m); }, 1},
    Entry{"v_half", [](int p, int m, int) { return make_v_half(p, m); }, 2},
    Entry{"v_min", [](int p, int m, int) { return make_v_min(p, m); }, 2},
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
  const Entry& entry = entry_of(name);
  check_shape(num_stages, num_microbatches, stages_per_rank);
  if (!can_have(entry, stages_per_rank)) {
    const std::string stages = entry.stages_per_rank == 1 ? " stage" : " stages";
    refuse("the schedule '" + std::string(name) + "' has " + std::to_string(entry.stages_per_rank) +
           stages + " on every rank, not " + std::to_string(stages_per_rank) +
           "; see --stages-per-rank");
  }
  return entry.make(num_stages, num_microbatches, stages_per_rank);
}

bool splits_backwards(const Schedule& schedule) {
  return std::ranges::any_of(schedule.ranks, [](const std::vector<Action>& actions) {
    return std::ranges::any_of(
        actions, [](const Action& action) { return action.kind == ActionKind::kBackwardWeight; });
  });
}

namespace {

/// The actions that a plan has of its own, for its stages and microbatches.
Schedule custom_schedule(const layout::Plan& plan) {
  Schedule schedule{
      static_cast<int>(plan.stages.size()), layout::num_microbatches_of_replica(plan), {}};
  for (const std::vector<std::string>& actions : plan.schedule.actions) {
    std::vector<Action>& rank = schedule.ranks.emplace_back();
    for (const std::string& action : actions) rank.push_back(parse_action(action));
  }
  for (int s = 0; s < schedule.num_stages; ++s) {
    schedule.positions.push_back(layout::position_of(plan, s));
  }
  check(schedule);
  return schedule;
}

void check_choice(const layout::ScheduleChoice& choice) {
  if (!choice.parameters.empty()) {
    refuse("the schedule '" + choice.name + "' has no parameter '" +
           choice.parameters.begin()->first + "'; leave it out");
  }
  if (choice.name == layout::kCustomSchedule) return;
  entry_of(choice.name);
  if (choice.actions.empty()) return;
  refuse("the schedule '" + choice.name +
         "' has actions of its own; name it custom to have others");
}

}  // namespace

int least_stages_per_rank(std::string_view name) {
  return name.empty() ? 1 : std::max(entry_of(name).stages_per_rank, 1);
}

namespace {

/// One replica, with the stages where `order` runs them.
void place_stages(layout::Plan& plan, const Schedule& order) {
  const auto num_ranks = static_cast<int>(order.ranks.size());
  for (layout::Role& role : plan.roles) {
    if (role.name == "train") role.mesh.pipeline = num_ranks;
  }
  for (int s = 0; s < order.num_stages; ++s) {
    plan.stages[s].position.reset();
    if (order.rank_of(s) != s) plan.stages[s].position = order.rank_of(s);
  }
}

}  // namespace

void deal_out_stages(layout::Plan& plan, int stages_per_rank) {
  place_stages(plan, make_schedule(plan.schedule.name, static_cast<int>(plan.stages.size()), 1,
                                   stages_per_rank));
}

void set_schedule(layout::Plan& plan, const Schedule& schedule) {
  check(schedule);
  const int num_microbatches = layout::num_microbatches_of_replica(plan);
  if (std::cmp_not_equal(schedule.num_stages, plan.stages.size()) ||
      schedule.num_microbatches != num_microbatches) {
    refuse("the schedule is for " + std::to_string(schedule.num_stages) + " stages and " +
           std::to_string(schedule.num_microbatches) + " microbatches, the plan has " +
           std::to_string(plan.stages.size()) + " and " + std::to_string(num_microbatches) +
           " on each replica");
  }
  place_stages(plan, schedule);
  plan.schedule = {.name = std::string(layout::kCustomSchedule), .parameters = {}};
  for (const std::vector<Action>& rank : schedule.ranks) {
    std::vector<std::string>& actions = plan.schedule.actions.emplace_back();
    for (const Action& action : rank) actions.push_back(to_text(action));
  }
}

Schedule schedule_of(const layout::Plan& plan) {
  const layout::ScheduleChoice& choice = plan.schedule;
  check_choice(choice);
  if (choice.name == layout::kCustomSchedule) return custom_schedule(plan);
  const auto num_stages = static_cast<int>(plan.stages.size());
  const int num_ranks = layout::train_role(plan).mesh.pipeline;
  if (num_stages % num_ranks != 0) {
    refuse(std::to_string(num_stages) + " stages cannot be dealt out to a pipeline of " +
           std::to_string(num_ranks) + " ranks: the schedule '" + choice.name +
           "' runs as many on each");
  }
  Schedule schedule = make_schedule(
      choice.name, num_stages, layout::num_microbatches_of_replica(plan), num_stages / num_ranks);
  for (int s = 0; s < num_stages; ++s) {
    const int position = layout::position_of(plan, s);
    if (position == schedule.rank_of(s)) continue;
    refuse("stage " + std::to_string(s) + " is at position " + std::to_string(position) +
           " of the pipeline; the schedule '" + choice.name + "' runs it at " +
           std::to_string(schedule.rank_of(s)));
  }
  return schedule;
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
