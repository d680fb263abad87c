#include "trireme/plan/simulate/expected_messages.h"

#include <algorithm>
#include <map>
#include <utility>

#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/schedule/message_limits.h"
#include "trireme/plan/simulate/stage_cost.h"

namespace trireme::simulate {
namespace {

using schedule::ChannelKind;
using schedule::Operation;
using schedule::OperationKind;

/// Bytes that a rank holds from one moment to another.
struct Holding {
  double begin_us = 0;
  double end_us = 0;
  std::int64_t bytes = 0;
};

std::int64_t message_bytes(const Operation& operation, ChannelKind kind,
                           const PriceInputs& inputs) {
  const graph::Value& value = inputs.planned.values[operation.item];
  const std::int64_t microbatch = inputs.plan.batch.microbatch;
  const std::int64_t bytes = kind == ChannelKind::kValue ? span_bytes(value, microbatch)
                                                         : graph::bytes_at(value, microbatch);
  return bytes + schedule::kMessageHeaderBytes;
}

/// The bytes of each channel's messages, in order; none of ties.
std::vector<std::vector<std::int64_t>> bytes_of_channels(const schedule::StepProgram& program,
                                                         const PriceInputs& inputs) {
  std::vector<std::vector<std::int64_t>> bytes(program.channels.size());
  for (const std::vector<Operation>& rank : program.ranks) {
    for (const Operation& operation : rank) {
      if (operation.kind != OperationKind::kSend) continue;
      const ChannelKind kind = program.channels[operation.channel].kind;
      if (!schedule::has_microbatch(kind)) continue;
      bytes[operation.channel].push_back(message_bytes(operation, kind, inputs));
    }
  }
  return bytes;
}

/// What ranks hold, by world rank.
std::vector<std::vector<Holding>> holdings(const schedule::StepProgram& program,
                                           const Simulation& simulation,
                                           const PriceInputs& inputs) {
  const std::vector<std::vector<std::int64_t>> bytes = bytes_of_channels(program, inputs);
  std::vector<std::vector<Holding>> held(program.ranks.size());
  for (std::size_t c = 0; c < program.channels.size(); ++c) {
    const auto& [from, to] = std::pair(program.channels[c].from_rank, program.channels[c].to_rank);
    const ChannelTimes& times = simulation.channels[c];
    for (std::size_t k = 0; k < bytes[c].size(); ++k) {
      const double taken = times.taken_us[k];
      double moved = times.arrived_us[k];
      if (from == to) moved = taken;
      if (k >= schedule::kReceivedAhead) {
        moved = std::max(moved, times.taken_us[k - schedule::kReceivedAhead]);
      }
      held[from].push_back({times.posted_us[k], moved, bytes[c][k]});
      if (from != to && moved < taken) held[to].push_back({moved, taken, bytes[c][k]});
    }
  }
  return held;
}

/// The bytes that are held over time: what is given back at a moment is gone before what comes at it.
class Level {
 public:
  explicit Level(const std::vector<Holding>& holdings) {
    std::map<double, std::pair<std::int64_t, std::int64_t>> changes;  // Given back, new.
    for (const Holding& one : holdings) {
      if (one.end_us <= one.begin_us) continue;
      changes[one.begin_us].second += one.bytes;
      changes[one.end_us].first += one.bytes;
    }
    std::int64_t level = 0;
    for (const auto& [us, change] : changes) {
      level += change.second - change.first;
      steps_.emplace_back(us, level);
    }
  }

  /// The most from one moment to another.
  std::int64_t most(double begin_us, double end_us) const {
    auto step = std::upper_bound(
        steps_.begin(), steps_.end(), begin_us,
        [](double us, const std::pair<double, std::int64_t>& one) { return us < one.first; });
    std::int64_t result = step == steps_.begin() ? 0 : std::prev(step)->second;
    for (; step != steps_.end() && step->first < end_us; ++step) {
      result = std::max(result, step->second);
    }
    return result;
  }

 private:
  std::vector<std::pair<double, std::int64_t>> steps_;
};

/// When a rank's actions began and ended, in order.
std::vector<std::pair<double, double>> action_spans(const std::vector<Operation>& operations,
                                                    const std::vector<const SimulatedEvent*>& at) {
  std::vector<std::pair<double, double>> spans;
  double now = 0;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const double begin = at[i] == nullptr ? now : at[i]->begin_us;
    now = at[i] == nullptr ? now : at[i]->end_us;
    if (operations[i].kind == OperationKind::kCompute) spans.emplace_back(begin, now);
  }
  return spans;
}

}  // namespace

std::vector<std::vector<HeldMessages>> expected_messages(const schedule::StepProgram& program,
                                                         const Simulation& simulation,
                                                         const PriceInputs& inputs) {
  std::vector<std::vector<const SimulatedEvent*>> events;
  for (const auto& rank : program.ranks) events.emplace_back(rank.size(), nullptr);
  for (const SimulatedEvent& event : simulation.events) {
    events[event.rank][event.operation] = &event;
  }
  const std::vector<std::vector<Holding>> held = holdings(program, simulation, inputs);
  std::vector<std::vector<HeldMessages>> result(program.ranks.size());
  for (std::size_t rank = 0; rank < result.size(); ++rank) {
    const Level level(held[rank]);
    const auto spans = action_spans(program.ranks[rank], events[rank]);
    for (std::size_t i = 0; i < spans.size(); ++i) {
      const double next = i + 1 < spans.size() ? spans[i + 1].first : simulation.step_us;
      result[rank].push_back(
          {level.most(spans[i].first, spans[i].second), level.most(spans[i].second, next)});
    }
  }
  return result;
}

}  // namespace trireme::simulate
