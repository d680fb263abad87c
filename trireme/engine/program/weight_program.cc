#include "trireme/engine/program/weight_program.h"

#include <ATen/Functions.h>

#include "trireme/base/error.h"
#include "trireme/engine/record/compare.h"
#include "trireme/plan/graph/ancestors.h"

namespace trireme::program {

void put_inputs(const graph::Graph& graph, const NodeProgram& nodes, const Batch& batch,
                Slots& slots) {
  for (const graph::Input& input : graph.inputs) {
    if (const auto slot = nodes.slot_of(input.value)) slots.tensors[*slot] = batch[input.name];
  }
}

WeightProgram::WeightProgram(const record::Recording& recording) : recording_(recording) {
  const graph::Graph& graph = recording.graph;
  std::vector<graph::ValueId> wanted;
  for (const graph::Loss& loss : graph.losses) {
    if (loss.weight) wanted.push_back(*loss.weight);
  }
  if (wanted.empty()) return;
  std::vector<int> positions = graph::ancestors(graph, wanted);
  for (int position : positions) {
    for (graph::ValueId written : graph.nodes[position].writes) {
      if (graph.values[written].source != graph::ValueSource::kBuffer) continue;
      throw Error(ErrorKind::kInvalidArgument,
                  record::name_of(graph.nodes[position]) +
                      " writes a buffer and a loss's weight depends on it; weights are computed "
                      "apart from the rest, so it would be written twice");
    }
  }
  nodes_ = std::make_unique<NodeProgram>(recording, std::move(positions), wanted,
                                         [](graph::ValueId, graph::NodeId) -> at::Tensor {
                                           TRIREME_CHECK(false, "a weight takes a parameter");
                                         });
}

at::Tensor WeightProgram::value(const Slots& slots, graph::ValueId value) const {
  if (const auto slot = nodes_->slot_of(value)) return slots.tensors[*slot];
  return recording_.tensors[value];
}

std::vector<double> WeightProgram::weights(const Batch& batch, std::int64_t num_samples) const {
  Slots slots;
  if (nodes_) {
    slots = nodes_->make_slots();
    put_inputs(recording_.graph, *nodes_, batch, slots);
    nodes_->run(slots, num_samples, {0, 0, 0});
  }
  std::vector<double> result;
  for (const graph::Loss& loss : recording_.graph.losses) {
    result.push_back(loss.weight ? value(slots, *loss.weight).item<double>()
                                 : static_cast<double>(num_samples));
  }
  return result;
}

}  // namespace trireme::program
