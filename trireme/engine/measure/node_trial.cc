#include "trireme/engine/measure/node_trial.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>

#include "trireme/engine/measure/node_key.h"
#include "trireme/engine/program/autograd_nodes.h"
#include "trireme/engine/program/boundary.h"
#include "trireme/engine/program/torch_failure.h"
#include "trireme/error.h"
#include "trireme/plan/graph/graph_queries.h"

namespace trireme::measure {
namespace {

using torch::autograd::Edge;
using torch::autograd::edge_list;

/// A stand-in for `tensor`, its edge added to `edges`.
at::Tensor stand_in(const at::Tensor& tensor, edge_list& edges) {
  const at::Tensor result =
      program::make_stand_in(tensor, program::make_node<program::CaptureNode>());
  edges.push_back(torch::autograd::impl::gradient_edge(result));
  return result;
}

c10::Storage storage_of(const at::Tensor& tensor) {
  return tensor.defined() && tensor.has_storage() ? tensor.storage() : c10::Storage();
}

/// A gradient for `tensor`: any normal numbers, in its layout.
at::Tensor seed_for(const at::Tensor& tensor) {
  constexpr double kGradient = 1e-3;
  if (tensor.layout() == at::kStrided) return at::full_like(tensor, kGradient);
  return at::full(tensor.sizes(), kGradient, tensor.options().layout(at::kStrided));
}

}  // namespace

NodeTrial::NodeTrial(const record::Recording& recording, int position, ForwardState& state)
    : recording_(recording), node_(recording.graph.nodes[position]), state_(state) {
  lay_out_slots();
  const program::ParameterBinding binding = [this](graph::ValueId parameter, graph::NodeId) {
    return bind(parameter);
  };
  call_ = program::make_call(node_, {recording.graph,
                                     recording.tensors,
                                     recording.opaques,
                                     slot_of_,
                                     binding,
                                     {state.num_samples, at::Device(at::kCPU)}});
}

std::string NodeTrial::key() const {
  return node_key(recording_.graph, node_, state_.num_samples, state_.weights);
}

void NodeTrial::lay_out_slots() {
  const std::vector<graph::Value>& all = recording_.graph.values;
  std::set<int> storages;
  for (graph::ValueId id : node_.writes) storages.insert(all[id].storage_id);
  for (graph::ValueId id : graph::input_values(node_)) {
    if (all[id].source == graph::ValueSource::kParameter ||
        all[id].source == graph::ValueSource::kBuffer) {
      continue;
    }
    if (!slot_of_.emplace(id, static_cast<int>(slot_of_.size())).second) continue;
    inputs_.push_back(id);
    if (storages.contains(all[id].storage_id)) written_.insert(id);
  }
  for (graph::ValueId id : node_.outputs) {
    if (id < 0 || all[id].source != graph::ValueSource::kNode) continue;
    slot_of_.emplace(id, static_cast<int>(slot_of_.size()));
  }
}

at::Tensor NodeTrial::bind(graph::ValueId parameter) {
  const at::Tensor& tensor = recording_.tensors[parameter];
  const bool is_use = node_.flags.grad_mode && tensor.requires_grad();
  return is_use ? stand_in(tensor, parameter_edges_) : tensor.detach();
}

void NodeTrial::fill(bool copy_written) {
  input_edges_.clear();
  weight_edges_.clear();
  roots_.clear();
  seeds_.clear();
  gradients_.clear();
  slots_.assign(slot_of_.size(), {});
  for (graph::ValueId id : inputs_) {
    const bool is_copied = copy_written && written_.contains(id);
    const at::Tensor tensor =
        is_copied ? program::copy_across(state_.values[id]) : state_.values[id];
    const bool wants_gradient = node_.flags.grad_mode && recording_.graph.values[id].requires_grad;
    auto& edges = state_.weights[id] ? weight_edges_ : input_edges_;
    slots_[slot_of_.at(id)] = wants_gradient ? stand_in(tensor, edges) : tensor.detach();
  }
}

void NodeTrial::prepare() { fill(/*copy_written=*/true); }

void NodeTrial::run() {
  if (call_.kind == program::CallKind::kSkip) return;
  program::ModeScope mode;
  mode.set(call_);
  try {
    if (call_.kind == program::CallKind::kBatchNorm) {
      program::call_batch_norm(call_, slots_);
    } else {
      program::call(call_, slots_, /*seed=*/static_cast<std::uint64_t>(node_.id));
    }
  } catch (const std::exception& failure) {
    throw program::node_failure("measuring", recording_.graph, node_, state_.num_samples, failure);
  }
}

void NodeTrial::forward() { run(); }

void NodeTrial::advance() {
  fill(/*copy_written=*/false);
  run();
  for (graph::ValueId id : node_.outputs) {
    const auto slot = slot_of_.find(id);
    if (slot == slot_of_.end()) continue;
    const at::Tensor& tensor = slots_[slot->second];
    state_.values[id] = tensor.defined() ? tensor.detach() : tensor;
  }
  slots_.clear();
}

void NodeTrial::keep_graph() {
  std::set<int> seen;
  for (graph::ValueId id : node_.outputs) {
    const auto slot = slot_of_.find(id);
    if (slot == slot_of_.end() || !seen.insert(slot->second).second) continue;
    const at::Tensor& tensor = slots_[slot->second];
    if (!tensor.defined() || !tensor.requires_grad()) continue;
    roots_.push_back(torch::autograd::impl::gradient_edge(tensor));
    seeds_.push_back(seed_for(tensor.detach()));
  }
  slots_.clear();
}

edge_list NodeTrial::edges_of(Part part) const {
  edge_list edges;
  if (part != Part::kWeights) edges = input_edges_;
  if (part == Part::kInputs) return edges;
  for (const edge_list* more : {&parameter_edges_, &weight_edges_}) {
    edges.insert(edges.end(), more->begin(), more->end());
  }
  return edges;
}

void NodeTrial::backward(Part part) {
  if (roots_.empty()) return;
  gradients_ = torch::autograd::Engine::get_default_engine().execute(
      roots_, seeds_, /*keep_graph=*/false, /*create_graph=*/false, /*accumulate_grad=*/false,
      edges_of(part));
}

const at::Tensor& NodeTrial::tensor_of(graph::ValueId id) const {
  const auto slot = slot_of_.find(id);
  return slot == slot_of_.end() ? recording_.tensors[id] : slots_[slot->second];
}

std::vector<c10::Storage> NodeTrial::input_storages() const {
  std::vector<c10::Storage> result;
  for (graph::ValueId id : graph::input_values(node_)) result.push_back(storage_of(tensor_of(id)));
  return result;
}

std::vector<c10::Storage> NodeTrial::output_storages() const {
  std::vector<c10::Storage> result;
  for (graph::ValueId id : node_.outputs) {
    result.push_back(id < 0 ? c10::Storage() : storage_of(tensor_of(id)));
  }
  return result;
}

std::int64_t NodeTrial::gradient_bytes() const {
  std::set<const void*> known;
  for (const at::Tensor& seed : seeds_) known.insert(storage_of(seed).unsafeGetStorageImpl());
  std::int64_t bytes = 0;
  for (const at::Tensor& gradient : gradients_) {
    const c10::Storage storage = storage_of(gradient);
    if (storage && known.insert(storage.unsafeGetStorageImpl()).second) {
      bytes += static_cast<std::int64_t>(storage.nbytes());
    }
  }
  return bytes;
}

}  // namespace trireme::measure
