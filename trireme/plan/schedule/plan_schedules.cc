#include <algorithm>
#include <cstdint>
#include <utility>

#include "trireme/error.h"
#include "trireme/plan/schedule/schedule_check.h"
#include "trireme/plan/schedule/schedules.h"

// The schedules of plans.

namespace trireme::schedule {
namespace {

[[noreturn]] void refuse_plan(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, problem);
}

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
  if (choice.name == layout::kCustomSchedule) {
    if (choice.parameters.empty()) return;
    refuse_plan("the schedule 'custom' has no parameter '" + choice.parameters.begin()->first +
                "'; leave it out");
  }
  if (choice.actions.empty()) return;
  refuse_plan("the schedule '" + choice.name +
              "' has actions of its own; name it custom to have others");
}

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
    refuse_plan("the schedule is for " + std::to_string(schedule.num_stages) + " stages and " +
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
    refuse_plan(std::to_string(num_stages) + " stages cannot be dealt out to a pipeline of " +
                std::to_string(num_ranks) + " ranks: the schedule '" + choice.name +
                "' runs as many on each");
  }
  Schedule schedule = make_schedule(choice, num_stages, layout::num_microbatches_of_replica(plan),
                                    num_stages / num_ranks);
  for (int s = 0; s < num_stages; ++s) {
    const int position = layout::position_of(plan, s);
    if (position == schedule.rank_of(s)) continue;
    refuse_plan("stage " + std::to_string(s) + " is at position " + std::to_string(position) +
                " of the pipeline; the schedule '" + choice.name + "' runs it at " +
                std::to_string(schedule.rank_of(s)));
  }
  return schedule;
}

}  // namespace trireme::schedule
