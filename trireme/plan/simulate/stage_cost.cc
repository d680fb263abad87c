#include "trireme/plan/simulate/stage_cost.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <set>
#include <string>
#include <utility>

#include "trireme/error.h"
#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/layout/crossings.h"
#include "trireme/plan/layout/regions.h"
#include "trireme/plan/simulate/stage_tensors.h"

namespace trireme::simulate {

std::int64_t span_bytes(const graph::Value& value, std::int64_t batch) {
  const std::int64_t dense = graph::bytes_at(value, batch);
  if (dense == 0 || value.strides.size() != value.shape.size()) return dense;
  std::int64_t last = 0;
  for (std::size_t d = 0; d < value.shape.size(); ++d) {
    std::int64_t step = 0;
    if (__builtin_mul_overflow(value.shape[d].at(batch) - 1, value.strides[d].at(batch), &step) ||
        step < 0 || __builtin_add_overflow(last, step, &last)) {
      return dense;
    }
  }
  std::int64_t bytes = 0;
  const auto size = static_cast<std::int64_t>(size_bytes(value.dtype));
  return __builtin_mul_overflow(last + 1, size, &bytes) ? dense : bytes;
}

std::unordered_map<int, std::int64_t> batch_storages(const graph::Graph& graph,
                                                     std::int64_t microbatch) {
  std::unordered_map<int, std::int64_t> bytes;
  for (const graph::Input& input : graph.inputs) {
    const graph::Value& value = graph.values[input.value];
    bytes[value.storage_id] = span_bytes(value, microbatch);
  }
  return bytes;
}

namespace {

/// A stage's times where it is captured, and where it is not.
class StageTimes {
 public:
  StageTimes(const graph::Graph& planned, const layout::Plan& plan, const profile::Profile& profile)
      : captured_(profile::node_times(profile, planned)),
        uncaptured_(profile::node_times(profile, planned, profile::NodeRuns::kUncaptured)),
        plan_(plan) {}

  const std::vector<profile::NodeTime>& of(std::size_t stage) const {
    return plan_.stages[stage].offload ? uncaptured_ : captured_;
  }

 private:
  std::vector<profile::NodeTime> captured_, uncaptured_;
  const layout::Plan& plan_;
};

void add_folds(const graph::Graph& planned, const layout::Plan& plan,
               const profile::StepCosts& step, std::vector<StageCost>& costs) {
  const auto positions = graph::node_positions(planned);
  for (const graph::UseSite& site : graph::use_sites(planned)) {
    const graph::Value& value = planned.values[planned.parameters[site.parameter].value];
    const auto elements = static_cast<double>(graph::num_elements_at(value, 0));
    const int stage = layout::stage_of(plan, positions.at(site.nodes.front()));
    costs[stage].weight_us += elements * step.fold_ns / 1000;
  }
}

/// A rank reads the samples of a microbatch once, all of their fields, if one of its stages takes any.
void add_reading(const graph::Graph& planned, const layout::Plan& plan,
                 const std::vector<std::vector<std::vector<int>>>& regions,
                 const profile::StepCosts& step, std::vector<StageCost>& costs) {
  if (step.read_us <= 0) return;
  std::set<int> readers;  // Positions of the pipeline.
  for (std::size_t s = 0; s < costs.size(); ++s) {
    const bool takes_any = std::ranges::any_of(std::views::join(regions[s]), [&](int position) {
      return graph::takes_field(planned, planned.nodes[position]);
    });
    const int place = layout::position_of(plan, static_cast<int>(s));
    if (takes_any && readers.insert(place).second) costs[s].read_us = step.read_us;
  }
}

void add_messages(const graph::Graph& planned, const layout::Plan& plan,
                  const profile::StepCosts& step, std::vector<StageCost>& costs) {
  const auto send = [&](int from, int to, std::int64_t bytes) {
    if (bytes == 0) return;
    const bool stays = layout::position_of(plan, from) == layout::position_of(plan, to);
    costs[from].sent_bytes += bytes;
    costs[from].copy_us +=
        stays ? profile::copy_us(step, bytes) : profile::message_work_us(step, bytes);
    costs[to].received_bytes += bytes;
  };
  for (const layout::Crossing& crossing : layout::crossings(planned, plan)) {
    const graph::Value& value = planned.values[crossing.value];
    const std::int64_t bytes = span_bytes(value, plan.batch.microbatch);
    const std::int64_t gradient_bytes =
        crossing.has_gradient ? graph::bytes_at(value, plan.batch.microbatch) : 0;
    for (std::size_t i = 1; i < crossing.stages.size(); ++i) {
      send(crossing.stages[0], crossing.stages[i], bytes);
      send(crossing.stages[i], crossing.stages[i - 1], gradient_bytes);
    }
  }
}

void add_offloads(const graph::Graph& planned, const layout::Plan& plan,
                  const profile::Profile& profile, std::vector<StageCost>& costs) {
  const auto offloads = [](const layout::Stage& stage) { return stage.offload; };
  if (std::ranges::none_of(plan.stages, offloads)) return;
  if (!profile.step.file) {
    throw Error(ErrorKind::kInvalidArgument,
                "the plan has stages that offload, but the profile says nothing of files; profile "
                "again with --offload-folder");
  }
  const std::vector<StageTensors> tensors = stage_tensors(planned, plan, profile);
  for (std::size_t s = 0; s < costs.size(); ++s) {
    if (plan.stages[s].offload) costs[s].offloaded_bytes = tensors[s].kept;
  }
}

}  // namespace

std::vector<StageCost> stage_costs(const graph::Graph& planned, const layout::Plan& plan,
                                   const profile::Profile& profile) {
  const StageTimes times(planned, plan, profile);
  const auto regions = layout::region_positions(planned, plan);
  std::vector<StageCost> costs(plan.stages.size());
  for (std::size_t s = 0; s < costs.size(); ++s) {
    for (const int position : std::views::join(regions[s])) {
      const profile::NodeTime& time = times.of(s)[position];
      costs[s].forward_us += time.forward_us;
      costs[s].input_us += time.input_us;
      costs[s].weight_us += time.weight_us;
    }
  }
  for (std::size_t s = 0; s < costs.size(); ++s) {
    if (plan.stages[s].recompute) costs[s].input_us += costs[s].forward_us;
  }
  add_reading(planned, plan, regions, profile.step, costs);
  add_offloads(planned, plan, profile, costs);
  add_folds(planned, plan, profile.step, costs);
  add_messages(planned, plan, profile.step, costs);
  return costs;
}

std::vector<StageCost> costs_while_holding(std::vector<StageCost> costs,
                                           const profile::Profile& profile,
                                           const std::vector<std::int64_t>& activation_bytes) {
  for (std::size_t s = 0; s < costs.size(); ++s) {
    const profile::Slowdown slowdown = profile::slowdown(profile, activation_bytes[s]);
    costs[s].forward_us *= slowdown.forward;
    costs[s].input_us *= slowdown.backward;
    costs[s].weight_us *= slowdown.backward;
  }
  return costs;
}

namespace {

/// Position of the node whose backward completes a site, by parameter and site.
using LastNodes = std::map<std::pair<std::string, int>, int>;

/// What each node adds to sums, by position.
std::vector<double> fold_work(const graph::Graph& planned, const profile::Profile& profile,
                              LastNodes& last_nodes) {
  const auto positions = graph::node_positions(planned);
  std::vector<double> work(planned.nodes.size());
  for (const graph::UseSite& site : graph::use_sites(planned)) {
    const graph::Parameter& parameter = planned.parameters[site.parameter];
    const auto elements =
        static_cast<double>(graph::num_elements_at(planned.values[parameter.value], 0));
    const int position = positions.at(site.nodes.front());
    last_nodes[{parameter.name, site.site}] = position;
    work[position] += elements * profile.step.fold_ns / 1000;
  }
  return work;
}

}  // namespace

std::vector<double> bucket_completions(const graph::Graph& planned, const layout::Plan& plan,
                                       const layout::ParameterMap& map,
                                       const profile::Profile& profile) {
  LastNodes last_nodes;
  const std::vector<double> folds = fold_work(planned, profile, last_nodes);
  const auto regions = layout::region_positions(planned, plan);
  std::vector<double> total(regions.size());
  std::vector<std::map<int, double>> done(regions.size());  // By stage and position.
  const StageTimes times(planned, plan, profile);
  for (std::size_t s = 0; s < regions.size(); ++s) {
    for (const std::vector<int>& positions : std::views::reverse(regions[s])) {
      for (const int position : positions) {
        if (plan.stages[s].recompute) total[s] += times.of(s)[position].forward_us;
      }
      for (const int position : std::views::reverse(positions)) {
        total[s] += times.of(s)[position].backward_us() + folds[position];
        done[s][position] = total[s];
      }
    }
  }
  std::vector<double> completions;
  for (const layout::Bucket& bucket : map.buckets) {
    double latest = 0;
    for (const layout::Slot& slot : bucket.slots) {
      const int position = last_nodes.at({slot.parameter, slot.site});
      latest = std::max(latest, done[bucket.stage][position]);
    }
    completions.push_back(total[bucket.stage] > 0 ? latest / total[bucket.stage] : 0);
  }
  return completions;
}

}  // namespace trireme::simulate
