#include "trireme/plan/schedule/execution.h"

#include <algorithm>
#include <map>
#include <optional>

namespace trireme::schedule {
namespace {

/// When the outputs of actions were there; of a backward under the name of its input part.
class Outputs {
 public:
  void add(Action action, std::int64_t time) {
    if (action.kind == ActionKind::kBackward) action.kind = ActionKind::kBackwardInput;
    times_.emplace(action, time);
  }

  /// When all that `action` needs was there; nothing where some of it is not.
  std::optional<std::int64_t> ready(const Action& action, int num_stages) const {
    std::int64_t time = 0;
    for (const Action& need : needs(action, num_stages)) {
      const auto found = times_.find(need);
      if (found == times_.end()) return std::nullopt;
      time = std::max(time, found->second);
    }
    return time;
  }

 private:
  std::map<Action, std::int64_t> times_;
};

}  // namespace

int UnitTimes::of(ActionKind kind) const {
  switch (kind) {
    case ActionKind::kForward:
      return forward;
    case ActionKind::kBackward:
      return backward;
    case ActionKind::kBackwardInput:
      return backward_input;
    case ActionKind::kBackwardWeight:
      return backward_weight;
  }
  return forward;
}

std::int64_t Execution::end() const {
  std::int64_t last = 0;
  for (const std::vector<Span>& spans : ranks) {
    if (!spans.empty()) last = std::max(last, spans.back().end);
  }
  return last;
}

std::vector<Action> needs(const Action& action, int num_stages) {
  const auto [kind, stage, microbatch] = action;
  if (kind == ActionKind::kForward) {
    if (stage == 0) return {};
    return {{ActionKind::kForward, stage - 1, microbatch}};
  }
  if (kind == ActionKind::kBackwardWeight) {
    return {{ActionKind::kBackwardInput, stage, microbatch}};
  }
  std::vector<Action> all = {{ActionKind::kForward, stage, microbatch}};
  if (stage < num_stages - 1) all.push_back({ActionKind::kBackwardInput, stage + 1, microbatch});
  return all;
}

Execution execute(const Schedule& schedule, const UnitTimes& times) {
  Execution execution;
  execution.ranks.resize(schedule.ranks.size());
  Outputs outputs;
  for (bool is_moving = true; is_moving;) {
    is_moving = false;
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
      std::vector<Span>& spans = execution.ranks[rank];
      while (spans.size() < schedule.ranks[rank].size()) {
        const Action& action = schedule.ranks[rank][spans.size()];
        const std::optional<std::int64_t> ready = outputs.ready(action, schedule.num_stages);
        if (!ready) break;
        const std::int64_t begin = std::max(*ready, spans.empty() ? 0 : spans.back().end);
        spans.push_back({begin, begin + times.of(action.kind)});
        outputs.add(action, spans.back().end);
        is_moving = true;
      }
    }
  }
  return execution;
}

}  // namespace trireme::schedule
