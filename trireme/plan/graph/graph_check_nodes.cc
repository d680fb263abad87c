#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "trireme/plan/graph/graph_check.h"
#include "trireme/plan/graph/graph_queries.h"

namespace trireme::graph {
namespace {

using internal::describe;
using internal::fail_check;
using internal::is_moderate;

/// Refuses what the recursive passes and `Size::at` could not bear.
void check_argument(const Argument& argument, int depth, const std::string& subject) {
  const auto* size = std::get_if<Size>(&argument.content);
  if (const auto* wrapped = std::get_if<WrappedNumber>(&argument.content)) {
    size = std::get_if<Size>(&wrapped->number);
  }
  if (size && !size->is_fixed() && (!is_moderate(size->per_sample) || !is_moderate(size->fixed))) {
    fail_check(subject, "a batch-dependent integer is too large");
  }
  const auto* list = std::get_if<ArgumentList>(&argument.content);
  if (!list) return;
  if (depth == kMaxListDepth) {
    fail_check(subject, "lists are nested deeper than " + std::to_string(kMaxListDepth));
  }
  for (const Argument& item : *list) check_argument(item, depth + 1, subject);
}

class NodeChecker {
 public:
  explicit NodeChecker(const Graph& graph) : graph_(graph), is_ready_(graph.values.size()) {
    for (std::size_t id = 0; id < graph.values.size(); ++id) {
      is_ready_[id] = graph.values[id].source != ValueSource::kNode;
    }
    const auto protect = [this](ValueId id, std::string what) {
      protected_.emplace(graph_.values[id].storage_id, std::move(what));
    };
    for (const Parameter& p : graph.parameters) {
      protect(p.value, "parameter '" + p.name + "'");
      const Value& value = graph.values[p.value];
      if (value.requires_grad) moved_.emplace(value.storage_id, p.name);
    }
    for (const ConstantTensor& c : graph.constants) {
      protect(c.value, "constant " + std::to_string(c.value));
    }
    for (const Buffer& b : graph.buffers) {
      if (b.policy != BufferPolicy::kReadOnly) continue;
      protect(b.value, "buffer '" + b.name + "', whose policy is read_only");
    }
  }

  void check(const Node& node) {
    check_identity(node);
    for (const Argument& argument : node.inputs) {
      check_argument(argument, 0, describe(node) + ": inputs");
    }
    const std::vector<ValueId> inputs = input_values(node);
    check_inputs(node, inputs);
    check_outputs(node, inputs);
    check_writes(node, inputs);
    check_offset(node, inputs);
    seen_.emplace(node.id, &node);
  }

 private:
  void check_identity(const Node& node) const {
    const std::string subject = describe(node);
    if (node.id < 0) fail_check(subject, "its id is negative");
    if (seen_.contains(node.id)) fail_check(subject, "its id is taken by an earlier node");
    if (node.op.empty()) fail_check(subject, "it names no operator");
    if (node.op == "opaque" && node.overload.empty()) {
      fail_check(subject, "overload: an opaque node needs the name of its callable");
    }
    if (node.copy_of == -1) return;
    const auto original = seen_.find(node.copy_of);
    if (original == seen_.end() || original->second->op != node.op ||
        original->second->overload != node.overload) {
      fail_check(subject, "copy_of: " + std::to_string(node.copy_of) +
                              " is no earlier node with the same operator");
    }
  }

  void check_inputs(const Node& node, const std::vector<ValueId>& inputs) const {
    for (const ValueId id : inputs) {
      if (!is_value(id)) {
        fail_check(describe(node), "inputs: there is no value " + std::to_string(id));
      }
      if (!is_ready_[id]) {
        fail_check(describe(node), "inputs: value " + std::to_string(id) + " is used before node " +
                                       std::to_string(graph_.values[id].producer) + " produces it");
      }
    }
  }

  void check_outputs(const Node& node, const std::vector<ValueId>& inputs) {
    std::size_t expected = 0;
    for (const int length : node.output_lists) {
      if (length < -1) fail_check(describe(node), "output_lists: a length is negative");
      expected += length == -1 ? 1 : static_cast<std::size_t>(length);
    }
    if (expected != node.outputs.size()) {
      fail_check(describe(node), "output_lists give " + std::to_string(expected) +
                                     " outputs, but there are " +
                                     std::to_string(node.outputs.size()));
    }
    for (const ValueId id : node.outputs) {
      if (id == -1) continue;
      if (graph_.values[id].producer == node.id) {
        is_ready_[id] = true;
      } else if (std::find(inputs.begin(), inputs.end(), id) == inputs.end()) {
        fail_check(describe(node), "outputs: value " + std::to_string(id) +
                                       " is neither produced here nor one of its inputs");
      }
    }
  }

  void check_writes(const Node& node, const std::vector<ValueId>& inputs) const {
    for (const ValueId id : node.writes) {
      if (std::find(inputs.begin(), inputs.end(), id) == inputs.end()) {
        fail_check(describe(node),
                   "writes: value " + std::to_string(id) + " is not among its inputs");
      }
      const bool is_parameter = graph_.values[id].source == ValueSource::kParameter;
      if (is_parameter && node.op == kRescaleRows) continue;  // check_written
      const auto owner = protected_.find(graph_.values[id].storage_id);
      if (owner != protected_.end()) {
        fail_check(describe(node), "writes: it changes " + owner->second + " in place");
      }
    }
  }

  /// An explicit offset counts from the start of the memory, where a run has other parameters.
  void check_offset(const Node& node, const std::vector<ValueId>& inputs) const {
    constexpr std::size_t kStorageOffset = 3;
    if (!node.op.starts_with("aten::as_strided") || node.inputs.size() <= kStorageOffset ||
        std::holds_alternative<std::monostate>(node.inputs[kStorageOffset].content)) {
      return;
    }
    for (const ValueId id : inputs) {
      const auto parameter = moved_.find(graph_.values[id].storage_id);
      if (parameter == moved_.end()) continue;
      fail_check(describe(node), "it addresses the parameter '" + parameter->second +
                                     "' by an absolute offset; slice it instead");
    }
  }

  bool is_value(ValueId id) const {
    return id >= 0 && static_cast<std::size_t>(id) < graph_.values.size();
  }

  const Graph& graph_;
  std::vector<bool> is_ready_;
  std::unordered_map<int, std::string> protected_;  ///< By storage, what must not be written.
  std::unordered_map<int, std::string> moved_;      ///< By storage, trainable parameters.
  std::unordered_map<NodeId, const Node*> seen_;
};

void check_written(const Graph& graph) {
  for (const int parameter : written_parameters(graph)) {
    const Node* other = use_beside_rows(graph, parameter);
    if (other == nullptr) continue;
    fail_check(describe(*other), "it uses the parameter '" + graph.parameters[parameter].name +
                                     "', whose rows another node rescales in place");
  }
}

}  // namespace

void internal::check_nodes(const Graph& graph) {
  NodeChecker checker(graph);
  for (const Node& node : graph.nodes) checker.check(node);
  check_written(graph);
}

namespace {

/// Walks from a value to everything that its content can depend on: producers, and the writers of
/// its memory.
class Ancestry {
 public:
  explicit Ancestry(const Graph& graph)
      : graph_(graph), histories_(storage_histories(graph)), positions_(node_positions(graph)) {
    for (const Buffer& b : graph.buffers) buffers_.insert(graph.values[b.value].storage_id);
  }

  /// What forbids to compute `value` ahead of the forward pass; nothing if nothing does.
  std::optional<std::string> obstacle(ValueId value) {
    std::set<ValueId> seen_values;
    std::set<int> seen_nodes;
    std::vector<ValueId> open = {value};
    while (!open.empty()) {
      const ValueId id = open.back();
      open.pop_back();
      if (!seen_values.insert(id).second) continue;
      if (graph_.values[id].source == ValueSource::kParameter) return "a parameter";
      for (const int position : nodes_behind(id)) {
        if (!seen_nodes.insert(position).second) continue;
        const Node& node = graph_.nodes[position];
        if (node.flags.random) return "the random " + internal::describe(node);
        if (writes_buffer(node)) return internal::describe(node) + ", which writes to a buffer";
        const std::vector<ValueId> inputs = input_values(node);
        open.insert(open.end(), inputs.begin(), inputs.end());
      }
    }
    return std::nullopt;
  }

 private:
  std::vector<int> nodes_behind(ValueId id) const {
    const Value& value = graph_.values[id];
    const auto history = histories_.find(value.storage_id);
    std::vector<int> nodes;
    if (history != histories_.end()) nodes = history->second.writes;
    if (value.source == ValueSource::kNode) nodes.push_back(positions_.at(value.producer));
    return nodes;
  }

  bool writes_buffer(const Node& node) const {
    for (const ValueId id : node.writes) {
      if (buffers_.contains(graph_.values[id].storage_id)) return true;
    }
    return false;
  }

  const Graph& graph_;
  std::unordered_map<int, StorageHistory> histories_;
  std::unordered_map<NodeId, int> positions_;
  std::unordered_set<int> buffers_;
};

void check_scalar(const Graph& graph, ValueId id, const std::string& subject) {
  if (id < 0 || static_cast<std::size_t>(id) >= graph.values.size()) {
    fail_check(subject, "there is no value " + std::to_string(id));
  }
  const Value& value = graph.values[id];
  if (!value.shape.empty()) {
    fail_check(subject, "value " + std::to_string(id) + " must be 0-dim, but has " +
                            std::to_string(value.shape.size()) +
                            " dimensions; reduce it by a sum or a mean");
  }
}

void check_loss(const Graph& graph, const LossOutput& loss, const std::string& subject) {
  check_scalar(graph, loss.value, subject);
  const Value& value = graph.values[loss.value];
  if (value.source != ValueSource::kNode) fail_check(subject, "no node computes it");
  if (value.dtype > Dtype::kBf16) {
    fail_check(subject, "expected a real dtype, got " + std::string(trireme::to_text(value.dtype)));
  }
  if (!std::isfinite(loss.coefficient)) fail_check(subject, "its coefficient is not finite");
  if (graph.mode == Mode::kTrain && loss.coefficient != 0 && !value.requires_grad) {
    fail_check(subject,
               "it depends on no trainable parameter; give it the coefficient 0 to only report it");
  }
}

}  // namespace

void internal::check_losses(const Graph& graph) {
  if (graph.losses.empty() && graph.mode == Mode::kTrain) {
    fail_check("losses", "there is none; the model must return at least one to be trained");
  }
  std::set<std::string> names;
  std::optional<Ancestry> ancestry;
  for (const LossOutput& loss : graph.losses) {
    const std::string subject = "loss '" + loss.name + "'";
    if (loss.name.empty()) fail_check(subject, "it has no name");
    if (!names.insert(loss.name).second) fail_check(subject, "its name is taken");
    check_loss(graph, loss, subject);
    if (!loss.weight) continue;
    check_scalar(graph, *loss.weight, subject + ": weight");
    if (!ancestry) ancestry.emplace(graph);
    const std::optional<std::string> obstacle = ancestry->obstacle(*loss.weight);
    if (obstacle) {
      fail_check(subject + ": weight", "it depends on " + *obstacle +
                                           "; weights are summed over all microbatches before the "
                                           "forward pass and may depend on the batch only");
    }
  }
}

namespace {

bool is_written(const Graph& graph, int storage) {
  return std::ranges::any_of(graph.nodes, [&](const Node& node) {
    return std::ranges::any_of(node.writes,
                               [&](ValueId id) { return graph.values[id].storage_id == storage; });
  });
}

}  // namespace

void internal::check_outputs(const Graph& graph) {
  std::set<std::string> names;
  for (const Output& output : graph.outputs) {
    const std::string subject = "output '" + output.name + "'";
    if (graph.mode == Mode::kTrain) fail_check(subject, "a graph in train mode has none");
    if (output.name.empty()) fail_check(subject, "it has no name");
    if (!names.insert(output.name).second) fail_check(subject, "its name is taken");
    if (output.value < 0 || static_cast<std::size_t>(output.value) >= graph.values.size()) {
      fail_check(subject, "there is no value " + std::to_string(output.value));
    }
    const Value& value = graph.values[output.value];
    const Size samples = graph.microbatch > 0 ? Size{0, graph.microbatch} : Size{1, 0};
    if (value.shape.empty() || value.shape[0] != samples || value.is_ragged) {
      fail_check(subject, "expected one row a sample, along dimension 0 of value " +
                              std::to_string(output.value));
    }
    if (value.source != ValueSource::kNode && value.source != ValueSource::kInput) {
      fail_check(subject, "it is neither made by a node nor a field of the batch");
    }
    if (value.source == ValueSource::kInput && is_written(graph, value.storage_id)) {
      fail_check(subject, "it is a field of the batch that a node writes to; return a copy");
    }
  }
}

}  // namespace trireme::graph
