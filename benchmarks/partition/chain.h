#pragma once

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/partition/candidate.h"
#include "trireme/plan/partition/chain.h"

namespace trireme::benchmarks {

/// One operator of a model, for a microbatch of one sample.
struct ChainNode {
  double forward_us = 0;
  double input_us = 0;
  double weight_us = 0;
  std::int64_t width = 1;     ///< Elements of its output.
  std::int64_t elements = 0;  ///< Of its parameter; 0 where it has none.
  int skip_from = -1;         ///< An earlier node whose output it takes too.
  std::string module = {};    ///< `blocks.3`; empty: of none.

  double work_us() const { return forward_us + input_us + weight_us; }
};

/// A model's operators in execution order; each takes the output of the one before.
struct Chain {
  std::string name;
  std::vector<ChainNode> nodes;
  int size() const { return static_cast<int>(nodes.size()); }
};

/// A graph with what it costs, and where it runs: p ranks on one machine, one core each.
struct Model {
  graph::Graph graph;
  profile::Profile profile;
  topology::Topology topology;
  std::string sha256;
};

/// Builds the graph of a chain, with a mean as its loss.
class GraphMaker {
 public:
  explicit GraphMaker(const Chain& chain) {
    graph::ValueId h = add_value(graph::ValueSource::kInput, {{1, 0}, {0, 64}}, false);
    graph_.inputs.push_back({"x", h, 0});
    std::vector<graph::ValueId> outputs;
    for (const ChainNode& node : chain.nodes) {
      std::vector<graph::ValueId> inputs = {h};
      if (node.skip_from >= 0) inputs.push_back(outputs[node.skip_from]);
      if (node.elements > 0) inputs.push_back(parameter(node.elements));
      h = add_node("aten::work", inputs, {{1, 0}, {0, node.width}});
      if (!node.module.empty()) graph_.nodes.back().name = node.module + "/work";
      outputs.push_back(h);
    }
    graph_.losses.push_back({"loss", add_node("aten::mean", {h}, {}), std::nullopt, 1});
  }
  graph::Graph graph() && { return std::move(graph_); }

 private:
  graph::ValueId add_value(graph::ValueSource source, std::vector<graph::Size> shape,
                           bool requires_grad) {
    graph::Value value;
    value.source = source;
    if (shape.size() == 2) value.strides = {shape[1], {0, 1}};
    if (shape.size() == 1) value.strides = {{0, 1}};
    value.shape = std::move(shape);
    value.requires_grad = requires_grad;
    value.storage_id = static_cast<int>(graph_.values.size());
    graph_.values.push_back(std::move(value));
    return static_cast<graph::ValueId>(graph_.values.size()) - 1;
  }

  graph::ValueId parameter(std::int64_t elements) {
    const graph::ValueId value = add_value(graph::ValueSource::kParameter, {{0, elements}}, true);
    graph_.parameters.push_back({"p" + std::to_string(graph_.parameters.size()), {}, value});
    return value;
  }

  graph::ValueId add_node(const std::string& op, const std::vector<graph::ValueId>& inputs,
                          std::vector<graph::Size> shape) {
    graph::Node node;
    node.id = static_cast<graph::NodeId>(graph_.nodes.size());
    node.name = node.op = op;
    bool requires_grad = false;
    for (const graph::ValueId input : inputs) {
      node.inputs.push_back({graph::ValueRef{input}});
      requires_grad = requires_grad || graph_.values[input].requires_grad;
    }
    const graph::ValueId output =
        add_value(graph::ValueSource::kNode, std::move(shape), requires_grad);
    graph_.values[output].producer = node.id;
    node.outputs = {output};
    node.output_lists = {-1};
    graph_.nodes.push_back(std::move(node));
    return output;
  }

  graph::Graph graph_;
};

/// The model of a chain. Links cost 30 us and 1 us per 2 KB, or nothing; updates, folds and copies
/// of messages cost nothing. Every node keeps its first input for the backward.
inline Model make_model(const Chain& chain, int num_ranks, bool has_free_links) {
  Model model{GraphMaker(chain).graph(), {}, {}, {}};
  model.sha256 = graph::graph_sha256(model.graph);
  model.profile.graph_sha256 = model.sha256;
  model.profile.microbatch = 1;
  model.profile.costs.resize(model.graph.nodes.size());
  model.profile.cost_of.resize(model.graph.nodes.size());
  std::iota(model.profile.cost_of.begin(), model.profile.cost_of.end(), 0);
  for (int n = 0; n < chain.size(); ++n) {
    profile::NodeCost& cost = model.profile.costs[n];
    cost.forward_us = chain.nodes[n].forward_us;
    cost.input_us = chain.nodes[n].input_us;
    cost.weight_us = chain.nodes[n].weight_us;
    cost.saved_inputs = {0};
  }
  const double free = has_free_links ? 0 : 1;
  model.profile.links = {
      {profile::LinkKind::kHost, {{64, 30 * free, 30 * free}, {1 << 20, 554 * free, 554 * free}}}};
  constexpr std::int64_t kMemory = std::int64_t{1} << 40;
  model.topology.hosts = {{"here", num_ranks, kMemory}};
  for (int rank = 0; rank < num_ranks; ++rank) model.topology.ranks.push_back({0, {rank}, kMemory});
  return model;
}

/// Prices a range by the sum of its nodes' work, without limits.
class WorkPricer : public partition::RangePricer {
 public:
  explicit WorkPricer(const std::vector<double>& work) : work_(work) {}
  void begin(int first) override {
    next_ = first;
    sum_ = 0;
  }
  void extend() override { sum_ += work_[next_++]; }
  partition::RangePrice price(int) const override { return {sum_, 0}; }
  double least_cost() const override { return sum_; }

 private:
  const std::vector<double>& work_;
  int next_ = 0;
  double sum_ = 0;
};

/// Cuts whose largest sum of `work` is least.
inline std::vector<int> least_largest_sum(const std::vector<double>& work, int num_stages) {
  WorkPricer pricer(work);
  const std::vector<double> no_limits(static_cast<std::size_t>(num_stages), 1);
  return partition::cut_chain(pricer, {std::vector<bool>(work.size() + 1, true), {}, no_limits})
      ->cuts;
}

/// The largest sum of `work` between cuts.
inline double largest_sum(const std::vector<double>& work, const std::vector<int>& cuts) {
  double largest = 0;
  std::size_t begin = 0;
  for (std::size_t s = 0; s <= cuts.size(); ++s) {
    const std::size_t end = s == cuts.size() ? work.size() : static_cast<std::size_t>(cuts[s]);
    largest =
        std::max(largest, std::accumulate(work.begin() + static_cast<std::ptrdiff_t>(begin),
                                          work.begin() + static_cast<std::ptrdiff_t>(end), 0.0));
    begin = end;
  }
  return largest;
}

inline std::vector<double> work_of(const Chain& chain) {
  std::vector<double> work;
  for (const ChainNode& node : chain.nodes) work.push_back(node.work_us());
  return work;
}

}  // namespace trireme::benchmarks
