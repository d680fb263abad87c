#include "trireme/plan/analytic/pipeline_clock.h"

#include <algorithm>
#include <utility>

#include "trireme/base/check.h"
#include "trireme/plan/schedule/schedules.h"

namespace trireme::analytic {
namespace {

using schedule::Action;
using schedule::ActionKind;

bool is_forward(const Action& action) { return action.kind == ActionKind::kForward; }
bool has_gradient(const Action& action) {
  return action.kind == ActionKind::kBackward || action.kind == ActionKind::kBackwardInput;
}
bool frees(const Action& action) {
  return action.kind == ActionKind::kBackward || action.kind == ActionKind::kBackwardWeight;
}

double duration(const Action& action, const PipelineTimes& times) {
  if (is_forward(action)) return times.forward[action.stage];
  const double backward = times.backward[action.stage];
  return action.kind == ActionKind::kBackward ? backward : backward / 2;
}

/// The stage that gets what the action makes; -1 where none does.
int target(const Action& action, int num_stages) {
  if (is_forward(action)) return action.stage + 1 < num_stages ? action.stage + 1 : -1;
  return has_gradient(action) ? action.stage - 1 : -1;
}

/// Whether the action waits for another stage's.
bool has_source(const Action& action, int num_stages) {
  return is_forward(action) ? action.stage > 0
                            : has_gradient(action) && action.stage + 1 < num_stages;
}

}  // namespace

double PlayedPipeline::step() const { return end.empty() ? 0 : *std::ranges::max_element(end); }

PipelineClock::PipelineClock(schedule::Schedule schedule) : schedule_(std::move(schedule)) {
  const int num_stages = schedule_.num_stages;
  const std::size_t num_cells = static_cast<std::size_t>(num_stages) * schedule_.num_microbatches;
  std::vector<char> values(num_cells), gradients(num_cells);
  const auto cell = [&](int stage, int microbatch) {
    return static_cast<std::size_t>(stage) * schedule_.num_microbatches + microbatch;
  };
  std::vector<std::size_t> next(schedule_.ranks.size());
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) {
      const std::vector<Action>& actions = schedule_.ranks[rank];
      for (; next[rank] < actions.size(); ++next[rank], moved = true) {
        const Action& action = actions[next[rank]];
        const std::vector<char>& inputs = is_forward(action) ? values : gradients;
        if (has_source(action, num_stages) && inputs[cell(action.stage, action.microbatch)] == 0) {
          break;
        }
        order_.push_back({action, static_cast<int>(rank)});
        const int to = target(action, num_stages);
        if (to >= 0) (is_forward(action) ? values : gradients)[cell(to, action.microbatch)] = 1;
      }
    }
  }
  std::size_t num_actions = 0;
  for (const std::vector<Action>& actions : schedule_.ranks) num_actions += actions.size();
  TRIREME_CHECK(order_.size() == num_actions, "the schedule has ranks that wait for ever");
}

PlayedPipeline PipelineClock::play(const PipelineTimes& times,
                                   std::vector<PlayedAction>* actions) const {
  const int num_stages = schedule_.num_stages;
  const std::size_t num_ranks = schedule_.ranks.size();
  const std::size_t num_microbatches = schedule_.num_microbatches;
  PlayedPipeline result{std::vector<double>(num_ranks), std::vector<double>(num_ranks),
                        std::vector<double>(num_ranks)};
  std::vector<double> values(num_stages * num_microbatches), gradients(values.size());
  std::vector<double> value_way(num_stages), gradient_way(num_stages);  // When a channel is free.
  for (const Entry& entry : order_) {
    const Action& action = entry.action;
    double& now = result.end[entry.rank];
    std::vector<double>& messages = is_forward(action) ? values : gradients;
    if (has_source(action, num_stages)) {
      now = std::max(now, messages[action.stage * num_microbatches + action.microbatch]);
    }
    const double seconds = duration(action, times);
    if (actions != nullptr) actions->push_back({action, entry.rank, now, now + seconds});
    now += seconds;
    result.busy[entry.rank] += seconds;
    const int to = target(action, num_stages);
    if (to < 0) continue;
    const bool is_local = schedule_.rank_of(to) == entry.rank;
    const double hop = is_local ? 0 : times.hop;
    if (times.hop_blocks) {
      now += hop;
      result.sent[entry.rank] += hop;
    }
    double& way = (is_forward(action) ? value_way : gradient_way)[to];
    way = std::max(way, now) + (times.hop_blocks ? 0 : hop);
    messages[to * num_microbatches + action.microbatch] = way;
  }
  return result;
}

std::vector<double> PipelineClock::most_held(const std::vector<double>& bytes) const {
  std::vector<double> result;
  for (const std::vector<Action>& actions : schedule_.ranks) {
    double held = 0, most = 0;
    for (const Action& action : actions) {
      if (is_forward(action)) held += bytes[action.stage];
      most = std::max(most, held);
      if (frees(action)) held -= bytes[action.stage];
    }
    result.push_back(most);
  }
  return result;
}

const PipelineClock& PipelineClocks::clock(const PipelineKey& key) {
  std::unique_ptr<PipelineClock>& found = clocks_[key];
  if (found == nullptr) {
    found = std::make_unique<PipelineClock>(
        schedule::make_schedule(key.schedule, key.num_ranks * key.stages_per_rank,
                                key.num_microbatches, key.stages_per_rank));
  }
  return *found;
}

PlayedPipeline PipelineClocks::play(const PipelineKey& key, const PipelineTimes& times) {
  const int p = key.num_ranks;
  constexpr int kPlayed = 6;
  if (key.num_microbatches <= (kPlayed + 1) * p) return clock(key).play(times);
  PipelineKey fewer = key;
  fewer.num_microbatches = kPlayed * p + key.num_microbatches % p;
  PipelineKey before = fewer;
  before.num_microbatches -= p;
  const PlayedPipeline last = clock(fewer).play(times);
  const PlayedPipeline less = clock(before).play(times);
  const double rounds = static_cast<double>(key.num_microbatches - fewer.num_microbatches) / p;
  PlayedPipeline result = last;
  for (std::size_t rank = 0; rank < result.end.size(); ++rank) {
    result.end[rank] += rounds * (last.end[rank] - less.end[rank]);
    result.busy[rank] += rounds * (last.busy[rank] - less.busy[rank]);
    result.sent[rank] += rounds * (last.sent[rank] - less.sent[rank]);
  }
  return result;
}

std::vector<double> PipelineClocks::most_held(const PipelineKey& key,
                                              const std::vector<double>& bytes) {
  PipelineKey fewer = key;
  if (key.schedule != "simple") {
    fewer.num_microbatches =
        std::min(key.num_microbatches, 6 * key.num_ranks + key.num_microbatches % key.num_ranks);
  }
  return clock(fewer).most_held(bytes);
}

PricedPipeline pipeline_program(const schedule::Schedule& schedule, const PipelineTimes& times) {
  PricedPipeline result;
  schedule::StepProgram& program = result.program;
  program.num_microbatches = schedule.num_microbatches;
  std::map<std::pair<bool, int>, int> channels;  // By direction and receiving stage.
  const auto channel = [&](bool is_value, int to) {
    const auto [found, is_new] = channels.try_emplace({is_value, to}, program.channels.size());
    if (is_new) {
      const int from = is_value ? to - 1 : to + 1;
      program.channels.push_back(
          {is_value ? schedule::ChannelKind::kValue : schedule::ChannelKind::kGradient, from, to,
           schedule.rank_of(from), schedule.rank_of(to)});
    }
    return found->second;
  };
  for (const std::vector<Action>& actions : schedule.ranks) {
    std::vector<schedule::Operation> operations;
    std::vector<simulate::Price> prices;
    const auto add = [&](schedule::Operation operation, const simulate::Price& price) {
      operations.push_back(operation);
      prices.push_back(price);
    };
    for (const Action& action : actions) {
      if (has_source(action, schedule.num_stages)) {
        add({.kind = schedule::OperationKind::kRecv,
             .channel = channel(is_forward(action), action.stage),
             .item = 0,
             .microbatch = action.microbatch},
            {});
      }
      add({.kind = schedule::OperationKind::kCompute, .action = action},
          {.work_us = duration(action, times)});
      const int to = target(action, schedule.num_stages);
      if (to < 0) continue;
      const bool is_local = schedule.rank_of(to) == schedule.rank_of(action.stage);
      const double hop = is_local ? 0 : times.hop;
      add({.kind = schedule::OperationKind::kSend,
           .channel = channel(is_forward(action), to),
           .item = 0,
           .microbatch = action.microbatch},
          times.hop_blocks ? simulate::Price{.work_us = hop} : simulate::Price{.delay_us = hop});
    }
    program.ranks.push_back(std::move(operations));
    result.prices.push_back(std::move(prices));
  }
  return result;
}

}  // namespace trireme::analytic
