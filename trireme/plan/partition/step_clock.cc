#include "trireme/plan/partition/step_clock.h"

#include <algorithm>

#include "trireme/base/check.h"
#include "trireme/error.h"

// With a core for every rank nothing is slowed down by what others do, so a moment is known once
// those that it waits for are: an action begins when its rank is free and its messages are there, a
// message leaves when its copy is made and its channel is free. Two stages, F = B = 2, messages 1:
//
//     0F0 0..2   1F0 3..5   1B0 5..7   0B0 8..10
//
// What follows the actions is as in schedule::StepProgram: exchange, joins, ties, norm, commit,
// update, ties.

namespace trireme::partition {

using schedule::Action, schedule::ActionKind, schedule::ChannelKind;

double work_us(const TimedStage& stage, ActionKind kind) {
  switch (kind) {
    case ActionKind::kForward:
      return stage.forward_us;
    case ActionKind::kBackward:
      return stage.input_us + stage.weight_us;
    case ActionKind::kBackwardInput:
      return stage.input_us;
    case ActionKind::kBackwardWeight:
      return stage.weight_us;
  }
  return 0;
}

namespace {

/// Whether the stages that `action` may wait for have done their part: values come from stages
/// before it, gradients from those after it.
bool is_ready(const Action& action, const std::vector<std::vector<bool>>& has_value,
              const std::vector<std::vector<bool>>& has_gradient) {
  const auto microbatch = static_cast<std::size_t>(action.microbatch);
  if (action.kind == ActionKind::kForward) {
    return action.stage == 0 || has_value[action.stage - 1][microbatch];
  }
  const auto next = static_cast<std::size_t>(action.stage) + 1;
  return !schedule::carries_messages(action.kind) || next == has_gradient.size() ||
         has_gradient[next][microbatch];
}

}  // namespace

StepClock::StepClock(const schedule::Schedule& schedule)
    : num_stages_(schedule.num_stages), num_microbatches_(schedule.num_microbatches) {
  const auto num_ranks = schedule.ranks.size();
  std::vector<std::size_t> next(num_ranks);
  std::vector<std::vector<bool>> has_value(num_ranks, std::vector<bool>(num_microbatches_));
  std::vector<std::vector<bool>> has_gradient = has_value;
  for (bool is_moving = true; is_moving;) {
    is_moving = false;
    for (std::size_t r = 0; r < num_ranks; ++r) {
      const std::vector<Action>& actions = schedule.ranks[r];
      while (next[r] < actions.size() && is_ready(actions[next[r]], has_value, has_gradient)) {
        const Action& action = actions[next[r]++];
        const bool is_last = action.microbatch + 1 == num_microbatches_;
        const bool completes = is_last && schedule::completes_gradients(action.kind);
        if (completes) completing_ = action.kind;
        order_.push_back({action, completes});
        if (schedule::carries_messages(action.kind)) {
          auto& has = action.kind == ActionKind::kForward ? has_value : has_gradient;
          has[action.stage][action.microbatch] = true;
        }
        is_moving = true;
      }
    }
  }
  for (std::size_t r = 0; r < num_ranks; ++r) {
    TRIREME_CHECK(next[r] == schedule.ranks[r].size(), "the schedule waits for ever");
  }
}

double StepClock::play(const TimedStep& step) {
  num_replicas_ = static_cast<int>(step.pipeline_us.size());
  now_.assign(num_replicas_, std::vector<double>(num_stages_));
  last_begin_ = now_;
  group_free_.assign(num_stages_, 0);
  for (int s = 0; s < num_stages_; ++s) {
    if (step.stages[s].weighs) meet_replicas(step.stages[s], s);
  }
  for (int r = 0; r < num_replicas_; ++r) {
    const bool is_as_before =
        r > 0 &&
        std::all_of(step.messages.begin(), step.messages.end(),
                    [r](const auto& message) {
                      return message.delays_us[r] == message.delays_us[r - 1];
                    }) &&
        std::all_of(step.stages.begin(), step.stages.end(), [r](const TimedStage& stage) {
          return stage.slowness_of(r) == stage.slowness_of(r - 1);
        });
    if (is_as_before) {
      now_[r] = now_[r - 1];
      last_begin_[r] = last_begin_[r - 1];
    } else {
      play_actions(step, r);
    }
  }
  play_reduces(step);
  return play_tail(step);
}

void StepClock::read_routes(const TimedStep& step, int replica) {
  value_routes_.assign(num_stages_, {});
  gradient_routes_.assign(num_stages_, {});
  std::size_t num_channels = 0;
  const schedule::Message* last = nullptr;
  for (const auto& [message, raw_copy_us, delays_us] : step.messages) {
    const double copy_us = raw_copy_us * step.stages[message.from_stage].slowness_of(replica);
    if (message.kind != ChannelKind::kValue && message.kind != ChannelKind::kGradient) continue;
    const bool is_same = last != nullptr && last->kind == message.kind &&
                         last->from_stage == message.from_stage &&
                         last->to_stage == message.to_stage;
    if (!is_same) ++num_channels;
    last = &message;
    auto& routes = message.kind == ChannelKind::kValue ? value_routes_ : gradient_routes_;
    routes[message.from_stage].push_back(
        {copy_us, delays_us[replica], num_channels - 1, message.to_stage});
  }
  free_.assign(num_channels, 0);
}

void StepClock::play_actions(const TimedStep& step, int replica) {
  read_routes(step, replica);
  values_in_.assign(static_cast<std::size_t>(num_stages_) * num_microbatches_, 0);
  gradients_in_ = values_in_;
  std::vector<double>& now = now_[replica];
  for (const Entry& entry : order_) {
    const auto& [kind, stage, microbatch] = entry.action;
    const bool carries = schedule::carries_messages(kind);
    const bool is_forward = kind == ActionKind::kForward;
    if (carries) {
      const std::vector<double>& in = is_forward ? values_in_ : gradients_in_;
      now[stage] = std::max(now[stage], in[stage * num_microbatches_ + microbatch]);
    }
    if (entry.completes) last_begin_[replica][stage] = now[stage];
    now[stage] += work_us(step.stages[stage], kind) * step.stages[stage].slowness_of(replica);
    if (!carries) continue;
    std::vector<double>& in = is_forward ? values_in_ : gradients_in_;
    for (const Route& route : (is_forward ? value_routes_ : gradient_routes_)[stage]) {
      now[stage] += route.copy_us;
      double& there = free_[route.channel];
      there = std::max(there, now[stage]) + route.delay_us;
      double& all = in[route.to * num_microbatches_ + microbatch];
      all = std::max(all, there);
    }
  }
}

void StepClock::play_reduces(const TimedStep& step) {
  reduced_.assign(num_stages_, {});
  for (int s = 0; s < num_stages_; ++s) {
    const TimedStage& stage = step.stages[s];
    const double last_us = work_us(stage, completing_);
    double ready = 0;
    for (const TimedReduce& reduce : stage.reduces) {
      ready = std::max(ready, std::min(1.0, reduce.ready));
      double begin = group_free_[s];
      for (int r = 0; r < num_replicas_; ++r) {
        begin = std::max(begin, last_begin_[r][s] + ready * last_us * stage.slowness_of(r));
      }
      group_free_[s] = begin + reduce.delay_us;
      reduced_[s].push_back(group_free_[s]);
    }
  }
}

double StepClock::play_tail(const TimedStep& step) {
  double exchanged = 0;
  for (const auto& now : now_)
    exchanged = std::max(exchanged, *std::max_element(now.begin(), now.end()));
  exchanged += step.exchange_us;
  for (auto& now : now_) {
    for (int s = 0; s < num_stages_; ++s) {
      now[s] = exchanged;
      for (const double reduced : reduced_[s]) now[s] = std::max(now[s], reduced);
    }
  }
  pass_ties(step, ChannelKind::kTieGradient);
  for (int r = 0; r < num_replicas_; ++r) {
    std::vector<double>& now = now_[r];
    for (int s = 0; s < num_stages_; ++s) {
      const TimedStage& stage = step.stages[s];
      now[s] += (stage.tie_sum_us + (step.has_norm ? stage.norm_us : 0)) * stage.slowness_of(r);
    }
    if (!step.has_norm) continue;
    const double met = *std::max_element(now.begin(), now.end()) + step.pipeline_us[r];
    std::fill(now.begin(), now.end(), met);
  }
  for (int s = 0; s < num_stages_; ++s) meet_replicas(step.stages[s], s);  // Commit.
  for (int r = 0; r < num_replicas_; ++r) {
    for (int s = 0; s < num_stages_; ++s) {
      now_[r][s] += step.stages[s].update_us * step.stages[s].slowness_of(r);
    }
  }
  pass_ties(step, ChannelKind::kTieValue);
  double end = 0;
  for (const auto& now : now_) end = std::max(end, *std::max_element(now.begin(), now.end()));
  return end;
}

/// All sends of a stage stand before its recvs.
void StepClock::pass_ties(const TimedStep& step, ChannelKind kind) {
  for (int r = 0; r < num_replicas_; ++r) {
    std::vector<double>& now = now_[r];
    std::vector<double> there(num_stages_);
    double free = 0;
    const schedule::Message* last = nullptr;
    for (const auto& [message, copy_us, delays_us] : step.messages) {
      if (message.kind != kind) continue;
      const bool is_same = last != nullptr && last->from_stage == message.from_stage &&
                           last->to_stage == message.to_stage;
      last = &message;
      now[message.from_stage] += copy_us * step.stages[message.from_stage].slowness_of(r);
      free = std::max(is_same ? free : 0, now[message.from_stage]) + delays_us[r];
      there[message.to_stage] = std::max(there[message.to_stage], free);
    }
    for (int s = 0; s < num_stages_; ++s) now[s] = std::max(now[s], there[s]);
  }
}

/// A small collective of each stage's replicas.
void StepClock::meet_replicas(const TimedStage& timed, int stage) {
  double begin = group_free_[stage];
  for (const auto& now : now_) begin = std::max(begin, now[stage]);
  group_free_[stage] = begin + timed.small_us;
  for (auto& now : now_) now[stage] = group_free_[stage];
}

}  // namespace trireme::partition
