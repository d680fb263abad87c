#include "trireme/plan/schedule/check_crossings.h"

#include <compare>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "trireme/error.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/schedule/step_facts.h"

namespace trireme::schedule {
namespace {

/// A tensor on its way from stage to stage; the same in every microbatch and replica.
struct Trip {
  ChannelKind kind = ChannelKind::kValue;
  graph::ValueId value = -1;
  int from = 0;
  int to = 0;
  auto operator<=>(const Trip&) const = default;
};

void collect_values(const graph::ArgumentList& arguments, std::set<graph::ValueId>& values) {
  for (const graph::Argument& argument : arguments) {
    if (const auto* ref = std::get_if<graph::ValueRef>(&argument.content))
      values.insert(ref->value);
    if (const auto* list = std::get_if<graph::ArgumentList>(&argument.content)) {
      collect_values(*list, values);
    }
  }
}

/// What one stage runs: of each node whether it is here, of each value whether a node here takes it.
struct StageNodes {
  std::set<graph::NodeId> nodes;
  std::set<graph::ValueId> takes;
};

std::vector<StageNodes> stages_of(const graph::Graph& planned, const layout::Plan& plan) {
  std::vector<StageNodes> stages(plan.stages.size());
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const layout::Stage& stage = plan.stages[s];
    stages[s].nodes.insert(stage.copies.begin(), stage.copies.end());
    for (int position = stage.begin; position < stage.end; ++position) {
      stages[s].nodes.insert(planned.nodes[position].id);
    }
  }
  for (const graph::Node& node : planned.nodes) {
    std::set<graph::ValueId> values;
    collect_values(node.inputs, values);
    for (StageNodes& stage : stages) {
      if (stage.nodes.contains(node.id)) stage.takes.insert(values.begin(), values.end());
    }
  }
  return stages;
}

/// The stage in whose range a node lies; copies of it elsewhere do not count.
std::map<graph::NodeId, int> homes_of(const graph::Graph& planned, const layout::Plan& plan) {
  std::map<graph::NodeId, int> homes;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    for (int position = plan.stages[s].begin; position < plan.stages[s].end; ++position) {
      homes[planned.nodes[position].id] = static_cast<int>(s);
    }
  }
  return homes;
}

std::set<Trip> needed_trips(const graph::Graph& planned, const layout::Plan& plan) {
  const std::vector<StageNodes> stages = stages_of(planned, plan);
  const auto homes = homes_of(planned, plan);
  std::set<Trip> trips;
  for (graph::ValueId id = 0; id < static_cast<graph::ValueId>(planned.values.size()); ++id) {
    const graph::Value& value = planned.values[id];
    if (value.source != graph::ValueSource::kNode) continue;
    const auto home = homes.find(value.producer);
    if (home == homes.end()) continue;
    int gradient_goes_to = home->second;
    for (int s = 0; s < static_cast<int>(stages.size()); ++s) {
      if (!stages[s].takes.contains(id) || stages[s].nodes.contains(value.producer)) continue;
      trips.insert({ChannelKind::kValue, id, home->second, s});
      if (value.requires_grad) trips.insert({ChannelKind::kGradient, id, s, gradient_goes_to});
      gradient_goes_to = s;
    }
  }
  return trips;
}

std::string text_of(const Trip& trip) {
  return std::string(trip.kind == ChannelKind::kValue ? "value " : "the gradient of value ") +
         std::to_string(trip.value) + " from stage " + std::to_string(trip.from) + " to stage " +
         std::to_string(trip.to);
}

/// A rank's sends or recvs of values and gradients: how often each in each microbatch.
using Counts = std::map<std::pair<Trip, int>, int>;

Counts counts_of(const StepProgram& program, int rank, OperationKind kind) {
  Counts counts;
  for (const Operation& operation : program.ranks[rank]) {
    if (operation.kind != kind) continue;
    const Channel& channel = program.channels.at(operation.channel);
    if (channel.kind != ChannelKind::kValue && channel.kind != ChannelKind::kGradient) continue;
    const Trip trip{channel.kind, operation.item, channel.from_stage, channel.to_stage};
    ++counts[{trip, operation.microbatch}];
  }
  return counts;
}

/// Microbatches that a rank runs, and whether they come back.
struct Microbatches {
  std::vector<int> numbers;
  bool come_back = true;
};

[[noreturn]] void fail(const std::string& problem, int rank) {
  Error error(ErrorKind::kInvalidArgument, "step program: " + problem);
  error.add({.rank = rank});
  throw error;
}

/// A rank does its end of the trips that begin (kSend) or end (kRecv) in its stages.
void check_rank(const StepProgram& program, const std::set<Trip>& trips, int rank,
                const std::set<int>& stages, const Microbatches& microbatches) {
  for (const OperationKind kind : {OperationKind::kSend, OperationKind::kRecv}) {
    const bool sends = kind == OperationKind::kSend;
    const std::string verb = sends ? " sends " : " takes ";
    Counts counts = counts_of(program, rank, kind);
    for (const Trip& trip : trips) {
      if (!stages.contains(sends ? trip.from : trip.to)) continue;
      if (trip.kind == ChannelKind::kGradient && !microbatches.come_back) continue;
      for (const int microbatch : microbatches.numbers) {
        const auto found = counts.find({trip, microbatch});
        const int times = found == counts.end() ? 0 : found->second;
        if (times != 1) {
          fail("rank " + std::to_string(rank) + verb + text_of(trip) + " " + std::to_string(times) +
                   " times for microbatch " + std::to_string(microbatch) +
                   "; a node of the other stage makes it necessary once",
               rank);
        }
        counts.erase(found);
      }
    }
    if (counts.empty()) continue;
    fail("rank " + std::to_string(rank) + verb + text_of(counts.begin()->first.first) +
             ", which no node needs",
         rank);
  }
}

/// Of the replicas [begin, end), as their rank numbers them: those of the second after as many as any replica has.
Microbatches microbatches_of(const layout::Plan& plan, int begin, int end,
                             std::optional<int> num_evaluated) {
  const int replicas = layout::train_role(plan).mesh.data;
  const auto trained = static_cast<int>(plan.batch.num_microbatches() / replicas);
  const int most = num_evaluated ? (*num_evaluated + replicas - 1) / replicas : trained;
  Microbatches result{{}, !num_evaluated};
  for (int r = begin; r < end; ++r) {
    const int num = num_evaluated ? first_of_part(*num_evaluated, replicas, r + 1) -
                                        first_of_part(*num_evaluated, replicas, r)
                                  : trained;
    for (int m = 0; m < num; ++m) result.numbers.push_back((r - begin) * most + m);
  }
  return result;
}

}  // namespace

void check_crossings(const StepProgram& program, const graph::Graph& planned,
                     const layout::Plan& plan, std::optional<int> num_evaluated) {
  const std::set<Trip> trips = needed_trips(planned, plan);
  const layout::Role& role = layout::train_role(plan);
  for (int position = 0; position < role.mesh.pipeline; ++position) {
    const std::vector<int> stages = layout::stages_at(plan, position);
    const int* ranks = role.placement.data() + std::ptrdiff_t{position} * role.mesh.data;
    for (int begin = 0, end = 1; end <= role.mesh.data; ++end) {
      if (end < role.mesh.data && ranks[end] == ranks[begin]) continue;
      check_rank(program, trips, ranks[begin], {stages.begin(), stages.end()},
                 microbatches_of(plan, begin, end, num_evaluated));
      begin = end;
    }
  }
}

}  // namespace trireme::schedule
