#include "tests/plans/random_models.h"

#include <algorithm>
#include <iterator>

#include "tests/graphs/graph_builder.h"
#include "trireme/plan/graph/cuts.h"

namespace trireme::layout::testing {

using graph::ValueId;
using graph::testing::GraphBuilder;

Model random_model(std::mt19937& random, int num_nodes) {
  const auto pick = [&random](int count) { return static_cast<int>(random() % count); };
  GraphBuilder b;
  std::vector<ValueId> values = {b.input("x", {16})}, parameters;
  for (int p = 0; p < 6; ++p) parameters.push_back(b.parameter("p" + std::to_string(p), {1 + p}));
  parameters.push_back(b.frozen("frozen", {30}));
  while (static_cast<int>(b.graph().nodes.size()) + 1 < num_nodes) {
    const int num_values = static_cast<int>(values.size());
    const ValueId a = values[pick(num_values)];
    const ValueId c = values[num_values - 1 - pick(std::min(3, num_values))];
    switch (pick(6)) {
      case 0:
        values.push_back(b.node("view", {a}, b.batch({16}), {.view_of = a}));
        break;
      case 1:
        values.push_back(b.node("ne", {c}, b.batch({16}), {.flags = {.grad_mode = false}}));
        break;
      case 2:
        values.push_back(b.node("mul", {a, parameters[pick(7)]}, b.batch({16})));
        break;
      default:
        values.push_back(b.node("add", {a, c}, b.batch({1 + pick(40)})));
    }
  }
  b.loss(b.node("mul", {values.back(), parameters[0]}, b.batch({4})));
  Model model{b.graph(), make_free_profile(b.graph())};
  for (profile::NodeCost& cost : model.profile.costs) {
    cost = {"", pick(9) + 0.0, pick(9) + 0.0, pick(9) + 0.0, 0, {}, {}, pick(50), 0, 0};
    if (pick(2) == 0) cost.saved_inputs = {0};
    if (pick(3) == 0) cost.saved_outputs = {0};
  }
  model.profile.step = {.optimizer_ns = 1, .fold_ns = 1000, .copy_ns_per_byte = 100};
  if (random() % 2 == 0) model.profile.step.read_us = static_cast<double>(random() % 9);
  // By no draw, so that seeds of tests mean the same problems.
  if (model.graph.nodes.size() % 2 == 1) model.profile.step.messages = {{0, 2}, {100, 7}};
  model.profile.links = {
      {profile::LinkKind::kHost, {{0, 3, 5}, {100, 4, 8}}},
      {profile::LinkKind::kNetwork, {{0, 6, 10}, {100, 8.0 + pick(30), 16.0 + pick(30)}}}};
  return model;
}

topology::Topology random_topology(std::mt19937& random, int num_ranks, int max_hosts) {
  topology::Topology topology = make_topology(num_ranks);
  const int num_hosts = 1 + static_cast<int>(random() % max_hosts);
  topology.hosts.resize(num_hosts, topology.hosts[0]);
  for (int h = 0; h < num_hosts; ++h) topology.hosts[h].name = "host" + std::to_string(h);
  std::vector<int> host_of;
  for (int rank = 0; rank < num_ranks; ++rank) {
    host_of.push_back(static_cast<int>(random() % num_hosts));
  }
  if (random() % 4 != 0) std::sort(host_of.begin(), host_of.end());
  for (int rank = 0; rank < num_ranks; ++rank) topology.ranks[rank].host = host_of[rank];
  return topology;
}

std::vector<int> random_cuts(std::mt19937& random, const graph::Graph& graph, int most) {
  const std::vector<bool> allowed = graph::allowed_cuts(graph);
  std::vector<int> all, cuts;
  for (int c = 1; c < static_cast<int>(graph.nodes.size()); ++c) {
    if (allowed[c]) all.push_back(c);
  }
  std::sample(all.begin(), all.end(), std::back_inserter(cuts), random() % (most + 1), random);
  return cuts;
}

}  // namespace trireme::layout::testing
