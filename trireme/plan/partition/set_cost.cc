#include "trireme/plan/partition/set_cost.h"

#include <algorithm>
#include <utility>

#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/simulate/stage_cost.h"
#include "trireme/plan/simulate/stage_tensors.h"

namespace trireme::partition {

using graph::ValueId;

SetCost::SetCost(const graph::Graph& graph, const profile::Profile& profile, RangeRules rules)
    : profile_(profile), rules_(std::move(rules)) {
  const std::vector<profile::NodeTime> times = profile::node_times(profile, graph);
  for (std::size_t p = 0; p < times.size(); ++p) {
    nodes_.push_back({times[p].forward_us + times[p].backward_us(),
                      graph::takes_field(graph, graph.nodes[p]),
                      {},
                      {},
                      {}});
  }
  read_values(graph);
  read_sites(graph);
  received_in_.assign(values_.size(), 0);
  used_in_.assign(graph.parameters.size(), 0);
}

void SetCost::read_values(const graph::Graph& graph) {
  values_.resize(graph.values.size());
  for (std::size_t p = 0; p < nodes_.size(); ++p) {
    const graph::Node& from = graph.nodes[p];
    std::vector<ValueId> inputs = graph::input_values(from);
    std::ranges::sort(inputs);
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    for (const ValueId id : inputs) {
      if (values_[id].producer < 0) continue;
      nodes_[p].inputs.push_back(id);
      values_[id].uses.push_back(static_cast<int>(p));
    }
    for (const ValueId id : from.outputs) {
      if (id < 0 || graph.values[id].producer != from.id) continue;
      nodes_[p].made.push_back(id);
      Value& value = values_[id];
      value.producer = static_cast<int>(p);
      value.has_gradient = graph.values[id].requires_grad;
      const std::int64_t bytes = simulate::span_bytes(graph.values[id], rules_.microbatch);
      const std::int64_t gradient_bytes =
          value.has_gradient ? graph::bytes_at(graph.values[id], rules_.microbatch) : 0;
      value.send_us = profile::message_work_us(profile_.step, bytes);
      if (value.has_gradient) {
        value.send_back_us = profile::message_work_us(profile_.step, gradient_bytes);
      }
      for (const profile::LinkKind kind : rules_.link_kinds) {
        const auto k = static_cast<std::size_t>(kind);
        value.message_us[k] = profile::link_us(profile_, kind, bytes, true);
        if (value.has_gradient) {
          value.gradient_us[k] = profile::link_us(profile_, kind, gradient_bytes, true);
        }
      }
    }
  }
}

void SetCost::read_sites(const graph::Graph& graph) {
  const auto positions = graph::node_positions(graph);
  for (const graph::UseSite& from : graph::use_sites(graph)) {
    const graph::Value& value = graph.values[graph.parameters[from.parameter].value];
    const std::int64_t elements = graph::num_elements_at(value, 0);
    const std::int64_t gradient_bytes =
        elements * simulate::gradient_bytes_per_element(value.dtype);
    const auto value_bytes = elements * static_cast<std::int64_t>(size_bytes(value.dtype));
    Site site{from.parameter, from.site == 0};
    site.fold_us = static_cast<double>(elements) * profile_.step.fold_ns / 1000;
    site.tie_us = (slowest_link_us(gradient_bytes) + slowest_link_us(value_bytes)) /
                  static_cast<double>(rules_.num_microbatches);
    nodes_[positions.at(from.nodes.front())].sites.push_back(site);
  }
}

double SetCost::slowest_link_us(std::int64_t bytes) const {
  double most = 0;
  for (const profile::LinkKind kind : rules_.link_kinds) {
    most = std::max(most, profile::link_us(profile_, kind, bytes, true));
  }
  return most;
}

/// Of the link to the next stage; where there is none, of any.
std::size_t SetCost::kind_after(int stage) const {
  if (rules_.link_kinds.empty()) return 0;
  const bool is_one = stage >= 0 && static_cast<std::size_t>(stage) < rules_.link_kinds.size();
  return static_cast<std::size_t>(rules_.link_kinds[is_one ? stage : 0]);
}

SetTime SetCost::time(const std::vector<int>& positions, const std::vector<bool>& is_done,
                      int stage) {
  ++stamp_;
  const auto goes_on = [&](const Value& value) {
    return std::ranges::any_of(value.uses, [&](int use) { return !is_done[use]; });
  };
  double work_us = 0, values_us = 0, gradients_us = 0, tie_us = 0;
  bool takes_field = false;
  const std::size_t before = kind_after(stage - 1), after = kind_after(stage);
  for (const int p : positions) {
    const Node& node = nodes_[p];
    work_us += node.work_us;
    takes_field = takes_field || node.takes_field;
    for (const int id : node.inputs) {
      const Value& value = values_[id];
      const bool is_own = std::ranges::binary_search(positions, value.producer);
      if (is_own || std::exchange(received_in_[id], stamp_) == stamp_) continue;
      values_us += value.message_us[before];
      work_us += value.send_back_us;
      if (value.has_gradient && goes_on(value)) gradients_us += value.gradient_us[after];
    }
    for (const int id : node.made) {
      const Value& value = values_[id];
      if (!goes_on(value)) continue;
      work_us += value.send_us;
      if (value.has_gradient) gradients_us += value.gradient_us[after];
    }
    for (const Site& site : node.sites) {
      work_us += site.fold_us;
      if (std::exchange(used_in_[site.parameter], stamp_) == stamp_) continue;
      if (!site.is_owner) tie_us += site.tie_us;
    }
  }
  if (takes_field) work_us += profile_.step.read_us;
  const double slowness = rules_.slowness.empty() ? 1 : rules_.slowness[stage];
  return {work_us * slowness, values_us, gradients_us, tie_us};
}

}  // namespace trireme::partition
