#include "trireme/plan/simulate/stage_cost.h"

#include "trireme/plan/graph/bytes.h"
#include "trireme/plan/graph/index.h"
#include "trireme/plan/graph/uses.h"
#include "trireme/plan/layout/crossings.h"
#include "trireme/plan/layout/manual.h"
#include "trireme/plan/simulate/value_bytes.h"

namespace trireme::simulate {
namespace {

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

void add_messages(const graph::Graph& planned, const layout::Plan& plan,
                  std::vector<StageCost>& costs) {
  for (const layout::Crossing& crossing : layout::crossings(planned, plan)) {
    const graph::Value& value = planned.values[crossing.value];
    const std::int64_t bytes = span_bytes(value, plan.batch.microbatch);
    const std::int64_t gradient_bytes =
        crossing.has_gradient ? graph::bytes_at(value, plan.batch.microbatch) : 0;
    for (std::size_t i = 1; i < crossing.stages.size(); ++i) {
      StageCost& producer = costs[crossing.stages[0]];
      StageCost& before = costs[crossing.stages[i - 1]];
      StageCost& consumer = costs[crossing.stages[i]];
      producer.sent_bytes += bytes;
      consumer.received_bytes += bytes;
      consumer.sent_bytes += gradient_bytes;
      before.received_bytes += gradient_bytes;
    }
  }
}

}  // namespace

std::vector<StageCost> stage_costs(const graph::Graph& planned, const layout::Plan& plan,
                                   const profile::Profile& profile) {
  const std::vector<profile::NodeTime> times = profile::node_times(profile, planned);
  const auto positions = layout::stage_positions(planned, plan);
  std::vector<StageCost> costs(plan.stages.size());
  for (std::size_t s = 0; s < costs.size(); ++s) {
    for (const int position : positions[s]) {
      costs[s].forward_us += times[position].forward_us;
      costs[s].input_us += times[position].input_us;
      costs[s].weight_us += times[position].weight_us;
    }
  }
  add_folds(planned, plan, profile.step, costs);
  add_messages(planned, plan, costs);
  for (StageCost& cost : costs) {
    cost.copy_us = static_cast<double>(cost.sent_bytes) * profile.step.copy_ns_per_byte / 1000;
  }
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

}  // namespace trireme::simulate
