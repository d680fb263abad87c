#include "trireme/plan/schedule/causes.h"

#include <algorithm>
#include <array>

#include "trireme/base/check.h"
#include "trireme/error.h"

// Every action carries a vector: by stage, how many actions are done before it begins. It is the
// largest, stage by stage, of that of the action before it on its stage and those of the actions
// whose messages it waits for, each with itself counted.

namespace trireme::schedule {
namespace {

/// Index of the action of a stage that takes and gives messages of `kind` of a microbatch; by
/// microbatch.
std::vector<int> indices(const std::vector<Action>& actions, ChannelKind kind) {
  std::vector<int> result;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const ActionKind action = actions[i].kind;
    if (!carries_messages(action) || carried_by(action) != kind) continue;
    const auto microbatch = static_cast<std::size_t>(actions[i].microbatch);
    if (microbatch >= result.size()) result.resize(microbatch + 1);
    result[microbatch] = static_cast<int>(i);
  }
  return result;
}

void raise(std::vector<int>& done, const std::vector<int>& other) {
  for (std::size_t s = 0; s < done.size(); ++s) done[s] = std::max(done[s], other[s]);
}

}  // namespace

Causes::Causes(const Schedule& schedule, std::span<const Message> messages) {
  const std::size_t num_stages = schedule.ranks.size();
  TRIREME_CHECK(static_cast<int>(num_stages) == schedule.num_stages, "several stages on a rank");
  stages_.resize(num_stages);
  std::vector<std::array<std::vector<int>, 2>> index_of(num_stages);
  std::vector<std::array<std::vector<int>, 2>> sources(num_stages);
  for (const Message& message : messages) {
    const auto kind = static_cast<std::size_t>(message.kind);
    if (kind < 2) sources[message.to_stage][kind].push_back(message.from_stage);
  }
  for (std::size_t s = 0; s < num_stages; ++s) {
    Stage& stage = stages_[s];
    stage.actions = schedule.ranks[s];
    stage.values = stage.gradients = {0};
    for (const Action& action : stage.actions) {
      const bool carries = carries_messages(action.kind);
      const bool is_forward = action.kind == ActionKind::kForward;
      stage.values.push_back(stage.values.back() + (carries && is_forward ? 1 : 0));
      stage.gradients.push_back(stage.gradients.back() + (carries && !is_forward ? 1 : 0));
    }
    for (const ChannelKind kind : {ChannelKind::kValue, ChannelKind::kGradient}) {
      index_of[s][static_cast<std::size_t>(kind)] = indices(stage.actions, kind);
      auto& from = sources[s][static_cast<std::size_t>(kind)];
      std::sort(from.begin(), from.end());
      from.erase(std::unique(from.begin(), from.end()), from.end());
    }
  }
  // An action can be worked out once those that it waits for are.
  for (bool is_moving = true; is_moving;) {
    is_moving = false;
    for (std::size_t s = 0; s < num_stages; ++s) {
      Stage& stage = stages_[s];
      while (stage.done.size() < stage.actions.size()) {
        const std::size_t i = stage.done.size();
        const Action& action = stage.actions[i];
        std::vector<int> done = i == 0 ? std::vector<int>(num_stages) : stage.done.back();
        done[s] = static_cast<int>(i);
        bool is_known = true;
        const auto kind = static_cast<std::size_t>(carried_by(action.kind));
        for (const int from :
             carries_messages(action.kind) ? sources[s][kind] : std::vector<int>()) {
          const auto index = static_cast<std::size_t>(index_of[from][kind].at(action.microbatch));
          is_known = is_known && index < stages_[from].done.size();
          if (!is_known) break;
          raise(done, stages_[from].done[index]);
          done[from] = std::max(done[from], static_cast<int>(index) + 1);
        }
        if (!is_known) break;
        stage.done.push_back(std::move(done));
        is_moving = true;
      }
    }
  }
  for (const Stage& stage : stages_) {
    TRIREME_CHECK(stage.done.size() == stage.actions.size(), "the schedule waits for ever");
  }
}

int Causes::num_taking(int stage, ChannelKind kind, int num_actions) const {
  return counts(stage, kind)[num_actions];
}

int Causes::done_before(int other, int stage, int index) const {
  return stages_[stage].done[index][other];
}

std::vector<int> Causes::most_sent(int other, ChannelKind kind, int stage) const {
  const auto& done = stages_[other].done;
  std::vector<int> sent;
  std::size_t first_later = 0;  // What an action waits for grows along its stage.
  for (int index = 0; index <= num_actions(stage); ++index) {
    while (first_later < done.size() && done[first_later][stage] <= index) ++first_later;
    sent.push_back(counts(other, kind)[first_later]);
  }
  return sent;
}

}  // namespace trireme::schedule
