#include "trireme/engine/measure/forward_walk.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "trireme/engine/program/step_losses.h"
#include "trireme/plan/graph/graph_queries.h"

namespace trireme::measure {
namespace {

/// What is there before the first node. What some node writes is copied: the next walk needs it.
ForwardState first_state(const record::Recording& recording, const Batch& batch) {
  const graph::Graph& graph = recording.graph;
  std::set<int> written;
  for (const graph::Node& node : graph.nodes) {
    for (graph::ValueId id : node.writes) written.insert(graph.values[id].storage_id);
  }
  std::vector<at::Tensor> values(graph.values.size());
  const auto put = [&](graph::ValueId id, const at::Tensor& tensor) {
    values[id] = written.contains(graph.values[id].storage_id) ? tensor.clone() : tensor;
  };
  for (const graph::Input& input : graph.inputs) put(input.value, batch[input.name]);
  for (std::size_t id = 0; id < values.size(); ++id) {
    if (graph.values[id].source != graph::ValueSource::kConstant) continue;
    put(static_cast<graph::ValueId>(id), recording.tensors[id]);
  }
  return {program::num_samples(graph, batch), std::move(values), weight_values(graph)};
}

/// Values that no later node takes, by the position of the last one that does or makes them.
std::map<int, std::vector<graph::ValueId>> last_uses(const graph::Graph& graph) {
  std::map<graph::ValueId, int> last;
  for (std::size_t p = 0; p < graph.nodes.size(); ++p) {
    for (graph::ValueId id : graph::input_values(graph.nodes[p])) last[id] = static_cast<int>(p);
    for (graph::ValueId id : graph.nodes[p].outputs) {
      if (id >= 0) last[id] = static_cast<int>(p);
    }
  }
  std::map<int, std::vector<graph::ValueId>> result;
  for (const auto& [id, position] : last) result[position].push_back(id);
  return result;
}

}  // namespace

void walk_forward(const record::Recording& recording, const Batch& batch,
                  const std::function<void(NodeTrial&)>& visit) {
  const graph::Graph& graph = recording.graph;
  ForwardState state = first_state(recording, batch);
  const auto unused = last_uses(graph);
  for (int p = 0; p < static_cast<int>(graph.nodes.size()); ++p) {
    NodeTrial trial(recording, p, state);
    visit(trial);
    trial.advance();
    const auto found = unused.find(p);
    if (found == unused.end()) continue;
    for (graph::ValueId id : found->second) state.values[id].reset();
  }
}

WriteGuard::WriteGuard(const record::Recording& recording) {
  const graph::Graph& graph = recording.graph;
  for (const graph::Buffer& buffer : graph.buffers) tensors_.keep(recording.tensors[buffer.value]);
  for (const int p : graph::written_parameters(graph)) {
    tensors_.keep(recording.tensors[graph.parameters[p].value]);
  }
}

}  // namespace trireme::measure
