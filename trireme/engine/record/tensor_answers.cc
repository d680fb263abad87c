#include "trireme/engine/record/tensor_answers.h"

#include <ATen/Functions.h>
#include <torch/library.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "trireme/engine/record/buffer_policies.h"
#include "trireme/engine/record/graph_difference.h"
#include "trireme/engine/record/packed_sequences.h"
#include "trireme/engine/record/recorder.h"
#include "trireme/plan/graph/graph_queries.h"

// Operators that hand a tensor's value to the program, which acts on it: most are holes. A replay
// can answer for it where the answer follows from the graph, or is checked at every run.

namespace trireme::record {
namespace {

void expect_equal(const at::Tensor& a, const at::Tensor& b, bool answer) {
  TORCH_CHECK(at::equal(a, b) == answer, "the two tensors were ", answer ? "equal" : "different",
              " when the model was recorded and are not now: it would take another branch; make it "
              "an opaque node");
}

std::string joined(const std::set<std::string>& names) {
  std::string text;
  for (auto name = names.begin(); name != names.end(); ++name) {
    const bool is_last = std::next(name) == names.end();
    text += (name == names.begin() ? "" : is_last ? " and " : ", ") + *name;
  }
  return text;
}

template <typename Entries>
std::string name_among(const Entries& entries, graph::ValueId value) {
  for (const auto& entry : entries) {
    if (entry.value == value) return entry.name;
  }
  return "";
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(trireme, library) {
  library.def("expect_equal(Tensor a, Tensor b, bool answer) -> ()", expect_equal);
}

const graph::Node* producer_of(const graph::Graph& graph, const graph::Value& value) {
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    if (value.producer >= 0 && node->id == value.producer) return &*node;
  }
  return nullptr;
}

std::string origin_text(const graph::Graph& graph, const std::vector<graph::Value>& values,
                        graph::ValueId value) {
  std::set<std::string> names;
  std::set<graph::ValueId> seen = {value};
  std::vector<graph::ValueId> pending = {value};
  while (!pending.empty()) {
    const graph::ValueId id = pending.back();
    pending.pop_back();
    switch (values[id].source) {
      case graph::ValueSource::kBuffer:
        names.insert("the buffer '" + name_among(graph.buffers, id) + "'");
        break;
      case graph::ValueSource::kInput:
      case graph::ValueSource::kStepScalar:
        names.insert("the input '" + name_among(graph.inputs, id) + "'");
        break;
      case graph::ValueSource::kParameter:
        names.insert("parameters");
        break;
      case graph::ValueSource::kConstant:
        names.insert("a constant");
        break;
      case graph::ValueSource::kNode:
        break;
    }
    if (const graph::Node* node = producer_of(graph, values[id])) {
      for (const graph::ValueId input : graph::input_values(*node)) {
        if (seen.insert(input).second) pending.push_back(input);
      }
    }
  }
  return joined(names);
}

bool counts_packed_sequences(const graph::Graph& graph, const std::vector<graph::Value>& values,
                             graph::ValueId value) {
  const graph::Node* select = producer_of(graph, values[value]);
  if (select == nullptr || select->op != "aten::select" || select->inputs.size() != 3) return false;
  const auto* sizes = std::get_if<graph::ValueRef>(&select->inputs[0].content);
  const auto* dim = std::get_if<graph::Size>(&select->inputs[1].content);
  const auto* index = std::get_if<graph::Size>(&select->inputs[2].content);
  const bool is_first = sizes != nullptr && dim != nullptr && index != nullptr &&
                        *dim == graph::Size{} && *index == graph::Size{};
  if (!is_first) return false;
  const graph::Node* pack = producer_of(graph, values[sizes->value]);
  return pack != nullptr && pack->op == kPack && pack->outputs.size() == 2 &&
         pack->outputs[1] == sizes->value;
}

}  // namespace trireme::record

namespace trireme::record::internal {

using batch_norm::kMomentum, batch_norm::kRunningMean, batch_norm::kTraining;

/// By its memory: other objects may stand for the same tensor.
bool Recorder::is_from_data(const at::Tensor& tensor) const {
  const std::vector<graph::ValueId> members = table_.in_storage_of(tensor);
  return std::any_of(members.begin(), members.end(),
                     [&](graph::ValueId member) { return from_data_.contains(member); });
}

bool Recorder::has_inputs_from_data() const {
  return std::any_of(inputs_.begin(), inputs_.end(),
                     [&](const InputTensor& input) { return from_data_.contains(input.value); });
}

bool Recorder::depends_on_data(c10::ArrayRef<const c10::IValue> values) const {
  return std::any_of(values.begin(), values.end(), [&](const c10::IValue& value) {
    if (value.isTensor()) return value.toTensor().defined() && is_from_data(value.toTensor());
    return (value.isTensorList() || value.isOptionalTensorList()) &&
           depends_on_data(value.toListRef());
  });
}

/// Whether the node's results depend on data, and with them all that shares memory with what it wrote.
void Recorder::follow_data() {
  const bool reads_data = !takes_shape_alone(node_.op) && has_inputs_from_data();
  if (!reads_data && !node_.flags.random) return;
  from_data_.insert(node_.outputs.begin(), node_.outputs.end());
  for (const InputTensor& input : inputs_) {
    if (std::find(node_.writes.begin(), node_.writes.end(), input.value) == node_.writes.end()) {
      continue;
    }
    for (const graph::ValueId member : table_.in_storage_of(input.tensor))
      from_data_.insert(member);
  }
}

void Recorder::take_answer(const std::vector<c10::IValue>& outputs) {
  if (node_.op == "aten::equal" && inputs_.size() == 2) return take_equality(outputs[0].toBool());
  if (node_.op == "aten::item" && inputs_.size() == 1) {
    // As torch's recurrent layers ask for the number of packed sequences: that of the batch.
    if (counts_packed_sequences(graph_, table_.values(), inputs_[0].value)) return;
    if (take_counter()) return;
  }
  // The answer follows from shapes and constants: what the program made of it is in the graph.
  if (!has_inputs_from_data()) return settle_uninitialised();
  std::string origin;
  for (const InputTensor& input : inputs_) {
    origin = origin_text(graph_, table_.values(), input.value);
  }
  refuse_data("it hands a tensor's value to the program, which a replay could not repeat" +
              (origin.empty() ? "" : "; the tensor comes from " + origin));
}

/// As torch's attention asks whether query, key and value are one tensor.
void Recorder::take_equality(bool answer) {
  const at::Tensor& a = inputs_[0].tensor;
  const at::Tensor& b = inputs_[1].tensor;
  const bool is_same = inputs_[0].value == inputs_[1].value ||
                       (a.is_alias_of(b) && a.sizes() == b.sizes() && a.strides() == b.strides() &&
                        a.storage_offset() == b.storage_offset() && a.dtype() == b.dtype());
  if (is_same && !answer) refuse("a tensor differs from itself: it holds NaN");
  if (is_same) return;  // so it is at every run
  node_.op = kExpectEqual;
  node_.overload.clear();
  node_.inputs.push_back({answer});
  settle_uninitialised();
  end_node();
}

/// As a batch norm without a momentum asks how many batches it has seen: settled at the end, when
/// it is known where the number went.
bool Recorder::take_counter() {
  const at::Tensor& counter = inputs_[0].tensor;
  const auto initial = initial_counters_.find(inputs_[0].value);
  if (initial == initial_counters_.end()) return false;
  const std::int64_t number = counter.item<std::int64_t>();
  if (number != initial->second + 1) return false;
  counter_reads_.push_back({inputs_[0].value, number, graph_.nodes.size(), node_});
  return true;
}

std::string Recorder::buffer_name(graph::ValueId value) const {
  for (const graph::Buffer& buffer : graph_.buffers) {
    if (buffer.value == value) return buffer.name;
  }
  return "";
}

/// A batch norm of the counter's module whose momentum is one over the counter takes the counter
/// instead.
void Recorder::settle_counters() {
  for (const CounterRead& read : counter_reads_) {
    const double share = 1.0 / static_cast<double>(read.number);
    bool is_explained = false;
    for (std::size_t i = read.position; i < graph_.nodes.size(); ++i) {
      graph::Node& node = graph_.nodes[i];
      if (!is_batch_norm(node.op) || node.inputs.size() <= kMomentum) continue;
      const auto* mean = std::get_if<graph::ValueRef>(&node.inputs[kRunningMean].content);
      const auto* training = std::get_if<bool>(&node.inputs[kTraining].content);
      const auto* momentum = std::get_if<graph::Real>(&node.inputs[kMomentum].content);
      const bool takes_share =
          mean != nullptr && training != nullptr && *training && momentum != nullptr &&
          std::memcmp(&momentum->fixed, &share, sizeof share) == 0 &&
          module_of(buffer_name(mean->value)) == module_of(buffer_name(read.counter));
      if (!takes_share) continue;
      node.inputs[kMomentum] = {graph::ValueRef{read.counter}};
      is_explained = true;
      break;
    }
    if (is_explained) continue;
    node_ = read.node;
    refuse("it hands the value of the buffer '" + buffer_name(read.counter) +
           "' to the program, which a replay could not repeat");
  }
}

}  // namespace trireme::record::internal
