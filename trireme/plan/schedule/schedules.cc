#include "trireme/plan/schedule/schedules.h"

#include <algorithm>
#include <array>

#include "trireme/error.h"

namespace trireme::schedule {
namespace {

/// Refuses fewer than one stage or microbatch with kInvalidArgument: what every generator asks.
void check_shape(int num_stages, int num_microbatches) {
  if (num_stages >= 1 && num_microbatches >= 1) return;
  throw Error(ErrorKind::kInvalidArgument,
              "a schedule needs at least one stage and one microbatch, got " +
                  std::to_string(num_stages) + " and " + std::to_string(num_microbatches));
}

}  // namespace

Schedule make_simple(int num_stages, int num_microbatches) {
  check_shape(num_stages, num_microbatches);
  Schedule schedule{num_stages, num_microbatches, {}};
  for (int stage = 0; stage < num_stages; ++stage) {
    std::vector<Action> actions;
    for (const ActionKind kind : {ActionKind::kForward, ActionKind::kBackward}) {
      for (int m = 0; m < num_microbatches; ++m) actions.push_back({kind, stage, m});
    }
    schedule.ranks.push_back(std::move(actions));
  }
  return schedule;
}

Schedule make_interleaved(int num_stages, int num_microbatches) {
  check_shape(num_stages, num_microbatches);
  Schedule schedule{num_stages, num_microbatches, {}};
  for (int stage = 0; stage < num_stages; ++stage) {
    // Until the first backward is back from the last stage, only forwards are ready.
    const int warmup = std::min(num_microbatches, num_stages - 1 - stage);
    std::vector<Action> actions;
    for (int m = 0; m < warmup; ++m) actions.push_back({ActionKind::kForward, stage, m});
    for (int m = warmup; m < num_microbatches; ++m) {
      actions.push_back({ActionKind::kForward, stage, m});
      actions.push_back({ActionKind::kBackward, stage, m - warmup});
    }
    for (int m = num_microbatches - warmup; m < num_microbatches; ++m) {
      actions.push_back({ActionKind::kBackward, stage, m});
    }
    schedule.ranks.push_back(std::move(actions));
  }
  return schedule;
}

Schedule make_zero_bubble(int num_stages, int num_microbatches) {
  Schedule schedule = make_interleaved(num_stages, num_microbatches);
  for (int stage = 0; stage < num_stages; ++stage) {
    std::vector<Action> actions;
    for (const Action& action : schedule.ranks[stage]) {
      const bool is_backward = action.kind == ActionKind::kBackward;
      const int m = action.microbatch;
      actions.push_back(is_backward ? Action{ActionKind::kBackwardInput, stage, m} : action);
      if (!is_backward || m < stage) continue;
      actions.push_back({ActionKind::kBackwardWeight, stage, m - stage});
    }
    for (int m = std::max(0, num_microbatches - stage); m < num_microbatches; ++m) {
      actions.push_back({ActionKind::kBackwardWeight, stage, m});
    }
    schedule.ranks[stage] = std::move(actions);
  }
  return schedule;
}

namespace {

struct Entry {
  std::string_view name;
  Schedule (*make)(int num_stages, int num_microbatches);
  bool splits_backwards;
};

constexpr std::array kSchedules = {
    Entry{"simple", make_simple, false},
    Entry{"interleaved", make_interleaved, false},
    Entry{"zero_bubble", make_zero_bubble, true},
};

const Entry& entry_of(std::string_view name) {
  std::string known;
  for (const Entry& entry : kSchedules) {
    if (entry.name == name) return entry;
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  throw Error(
      ErrorKind::kInvalidArgument,
      "there is no schedule '" + std::string(name.substr(0, 80)) + "'; choose one of " + known);
}

}  // namespace

Schedule make_schedule(std::string_view name, int num_stages, int num_microbatches) {
  return entry_of(name).make(num_stages, num_microbatches);
}

bool splits_backwards(std::string_view name) { return entry_of(name).splits_backwards; }

Schedule make_schedule(const layout::ScheduleChoice& choice, int num_stages, int num_microbatches) {
  if (!choice.parameters.empty()) {
    throw Error(ErrorKind::kInvalidArgument,
                "the schedule '" + choice.name + "' has no parameter '" +
                    choice.parameters.begin()->first + "'; leave it out");
  }
  return make_schedule(std::string_view(choice.name), num_stages, num_microbatches);
}

Schedule forwards(int num_stages, int num_microbatches) {
  Schedule schedule{num_stages, num_microbatches, {}};
  for (int stage = 0; stage < num_stages; ++stage) {
    std::vector<Action>& actions = schedule.ranks.emplace_back();
    for (int m = 0; m < num_microbatches; ++m) actions.push_back({ActionKind::kForward, stage, m});
  }
  return schedule;
}

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const Entry& entry : kSchedules) names.emplace_back(entry.name);
  return names;
}

}  // namespace trireme::schedule
