#include "trireme/engine/program/weight_program.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "trireme/base/check.h"
#include "trireme/engine/record/graph_difference.h"
#include "trireme/error.h"
#include "trireme/plan/graph/graph_queries.h"

namespace trireme::program {

void put_inputs(const graph::Graph& graph, const NodeProgram& nodes, const Batch& batch,
                Slots& slots) {
  for (const graph::Input& input : graph.inputs) {
    if (const auto slot = nodes.slot_of(input.value)) slots.tensors[*slot] = batch[input.name];
  }
}

namespace {

std::set<int> weighted_losses(const graph::Graph& graph) {
  std::set<int> losses;
  for (std::size_t i = 0; i < graph.losses.size(); ++i) {
    if (graph.losses[i].weight) losses.insert(static_cast<int>(i));
  }
  return losses;
}

std::vector<graph::ValueId> weights_of(const graph::Graph& graph, const std::set<int>& losses) {
  std::vector<graph::ValueId> weights;
  for (const int loss : losses) weights.push_back(*graph.losses[loss].weight);
  return weights;
}

/// Of all losses, so that ranks refuse a graph alike.
void check_writes(const graph::Graph& graph) {
  for (const int position : graph::ancestors(graph, weights_of(graph, weighted_losses(graph)))) {
    for (const graph::ValueId written : graph.nodes[position].writes) {
      if (graph.values[written].source != graph::ValueSource::kBuffer) continue;
      throw Error(ErrorKind::kInvalidArgument,
                  record::name_of(graph.nodes[position]) +
                      " writes a buffer and a loss's weight depends on it; weights are computed "
                      "apart from the rest, so it would be written twice");
    }
  }
}

}  // namespace

WeightProgram::WeightProgram(const record::Recording& recording)
    : WeightProgram(recording, weighted_losses(recording.graph)) {}

WeightProgram::WeightProgram(const record::Recording& recording, std::set<int> losses)
    : recording_(recording), losses_(std::move(losses)) {
  const graph::Graph& graph = recording.graph;
  check_writes(graph);
  if (losses_.empty()) return;
  const std::vector<graph::ValueId> wanted = weights_of(graph, losses_);
  nodes_ = std::make_unique<NodeProgram>(recording, graph::ancestors(graph, wanted), wanted,
                                         [](graph::ValueId, graph::NodeId) -> at::Tensor {
                                           TRIREME_CHECK(false, "a weight takes a parameter");
                                         });
  reads_batch_ = std::ranges::any_of(graph.inputs, [this](const graph::Input& input) {
    return nodes_->slot_of(input.value).has_value();
  });
}

double WeightProgram::value(const Slots& slots, graph::ValueId value) const {
  const auto slot = nodes_->slot_of(value);
  return (slot ? slots.tensors[*slot] : recording_.tensors[value]).item<double>();
}

std::vector<double> WeightProgram::weights(const Batch& batch, const graph::BatchSize& size) const {
  Slots slots;
  if (nodes_) {
    slots = nodes_->make_slots();
    put_inputs(recording_.graph, *nodes_, batch, slots);
    nodes_->run(slots, size, {0, 0, 0});
  }
  std::vector<double> result;
  for (std::size_t i = 0; i < recording_.graph.losses.size(); ++i) {
    const graph::LossOutput& loss = recording_.graph.losses[i];
    if (!loss.weight) {
      result.push_back(static_cast<double>(size.samples));
    } else if (losses_.contains(static_cast<int>(i))) {
      result.push_back(value(slots, *loss.weight));
    } else {
      result.push_back(std::numeric_limits<double>::quiet_NaN());
    }
  }
  return result;
}

}  // namespace trireme::program
