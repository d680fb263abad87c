#include "trireme/engine/measure/node_trial.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "trireme/engine/program/boundary_copy.h"
#include "trireme/engine/program/stage_autograd.h"
#include "trireme/engine/program/torch_failure.h"
#include "trireme/error.h"
#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/graph/node_json.h"

namespace trireme::measure {

WeightValues weight_values(const graph::Graph& graph) {
  std::vector<bool> is_from_batch(graph.values.size());
  for (const graph::Input& input : graph.inputs) is_from_batch[input.value] = true;
  for (const graph::Node& node : graph.nodes) {
    const std::vector<graph::ValueId> inputs = graph::input_values(node);
    if (std::none_of(inputs.begin(), inputs.end(),
                     [&](graph::ValueId id) { return is_from_batch[id]; })) {
      continue;
    }
    for (graph::ValueId id : node.outputs) {
      if (id >= 0) is_from_batch[id] = true;
    }
    for (graph::ValueId id : node.writes) is_from_batch[id] = true;
  }
  WeightValues result(graph.values.size());
  for (std::size_t id = 0; id < result.size(); ++id) {
    result[id] = graph.values[id].requires_grad && !is_from_batch[id];
  }
  return result;
}

namespace {

using graph::Argument;
using graph::ArgumentList;
using graph::Size;

class KeyWriter {
 public:
  KeyWriter(const graph::Graph& graph, const graph::Node& node, std::int64_t batch,
            const WeightValues& weights)
      : graph_(graph), node_(node), batch_(batch), weights_(weights) {}

  std::string write() {
    std::string text = node_.op;
    if (!node_.overload.empty()) text += "." + node_.overload;
    text += "(" + list(node_.inputs) + ")";
    if (is_view()) text += outputs();
    if (!node_.flags.grad_mode) text += " no_grad";
    if (node_.autocast) text += " autocast " + std::string(to_text(node_.autocast->dtype));
    return text;
  }

 private:
  bool is_view() const { return node_.flags.view && node_.writes.empty(); }

  static bool holds_tensor(const Argument& argument) {
    if (const auto* list = std::get_if<ArgumentList>(&argument.content)) {
      return std::any_of(list->begin(), list->end(), holds_tensor);
    }
    return std::holds_alternative<graph::ValueRef>(argument.content);
  }

  std::string list(const ArgumentList& arguments) {
    std::string text;
    for (const Argument& argument : arguments) {
      if (is_view() && !holds_tensor(argument)) continue;
      text += (text.empty() ? "" : ", ") + this->argument(argument);
    }
    return text;
  }

  std::string argument(const Argument& argument) {
    if (const auto* ref = std::get_if<graph::ValueRef>(&argument.content)) return input(ref->value);
    if (const auto* items = std::get_if<ArgumentList>(&argument.content)) {
      return "[" + list(*items) + "]";
    }
    if (const auto* size = std::get_if<Size>(&argument.content)) {
      return std::to_string(size->at(batch_));
    }
    if (const auto* real = std::get_if<graph::Real>(&argument.content)) {
      return compact_text(real_to_json(real->at(batch_)));
    }
    return compact_text(graph::to_json(argument));
  }

  /// A tensor; one that was taken before is named by its place, for that decides aliasing.
  std::string input(graph::ValueId id) {
    const auto known = std::find(seen_.begin(), seen_.end(), id);
    if (known != seen_.end()) return "again " + std::to_string(known - seen_.begin());
    seen_.push_back(id);
    const graph::Value& value = graph_.values[id];
    if (!value.requires_grad || !node_.flags.grad_mode) return tensor(value);
    return tensor(value) + (weights_[id] ? " weight" : " gradient");
  }

  std::string outputs() const {
    std::string text;
    for (graph::ValueId id : node_.outputs) {
      if (id >= 0) text += (text.empty() ? " -> " : ", ") + tensor(graph_.values[id]);
    }
    return text;
  }

  std::string sizes(const std::vector<Size>& sizes) const {
    std::string text;
    for (const Size& size : sizes) {
      text += (text.empty() ? "" : ", ") + std::to_string(size.at(batch_));
    }
    return text;
  }

  std::string tensor(const graph::Value& value) const {
    std::string text = std::string(to_text(value.dtype)) + "[" + sizes(value.shape) + "]";
    std::int64_t dense = 1;
    for (std::size_t d = value.shape.size(); d-- > 0;) {
      if (value.strides.empty()) break;
      if (value.shape[d].at(batch_) != 1 && value.strides[d].at(batch_) != dense) {
        return text + "{" + sizes(value.strides) + "}";
      }
      dense *= value.shape[d].at(batch_);
    }
    return text;
  }

  const graph::Graph& graph_;
  const graph::Node& node_;
  const std::int64_t batch_;
  const WeightValues& weights_;
  std::vector<graph::ValueId> seen_;
};

}  // namespace

std::string node_key(const graph::Graph& graph, const graph::Node& node, std::int64_t batch,
                     const WeightValues& weights) {
  return KeyWriter(graph, node, batch, weights).write();
}

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
