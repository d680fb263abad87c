#include "trireme/engine/record/buffer_policies.h"

#include <algorithm>
#include <set>
#include <vector>

#include "trireme/engine/record/graph_difference.h"
#include "trireme/error.h"

namespace trireme::record {

namespace {

using batch_norm::kMomentum, batch_norm::kRunningMean, batch_norm::kRunningVar,
    batch_norm::kTraining;

bool is_value(const graph::Argument& argument, graph::ValueId value) {
  const auto* ref = std::get_if<graph::ValueRef>(&argument.content);
  return ref != nullptr && ref->value == value;
}

bool mentions(const graph::Argument& argument, graph::ValueId value) {
  if (const auto* list = std::get_if<graph::ArgumentList>(&argument.content)) {
    return std::any_of(list->begin(), list->end(),
                       [&](const graph::Argument& item) { return mentions(item, value); });
  }
  return is_value(argument, value);
}

bool is_batch_norm_statistic(const graph::Node& node, graph::ValueId value) {
  if (!is_batch_norm(node.op) || node.inputs.size() <= kTraining) return false;
  const auto* training = std::get_if<bool>(&node.inputs[kTraining].content);
  if (training == nullptr || !*training) return false;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (i != kRunningMean && i != kRunningVar && mentions(node.inputs[i], value)) return false;
  }
  return true;
}

bool is_increment(const graph::Node& node, graph::ValueId value) {
  if (node.op != "aten::add_" || node.inputs.empty() || !is_value(node.inputs[0], value)) {
    return false;
  }
  return std::all_of(node.inputs.begin() + 1, node.inputs.end(), [](const graph::Argument& other) {
    return !std::holds_alternative<graph::ValueRef>(other.content);
  });
}

bool is_integer(Dtype dtype) {
  return dtype == Dtype::kI64 || dtype == Dtype::kI32 || dtype == Dtype::kI16 ||
         dtype == Dtype::kI8 || dtype == Dtype::kU8;
}

/// A batch norm whose momentum is one over the counter.
bool is_share(const graph::Node& node, graph::ValueId value) {
  return is_batch_norm(node.op) && node.inputs.size() > kMomentum &&
         is_value(node.inputs[kMomentum], value) && !mentions(node.inputs[kRunningMean], value) &&
         !mentions(node.inputs[kRunningVar], value);
}

graph::BufferPolicy policy_of(const graph::Graph& graph, graph::ValueId buffer,
                              const std::set<int>& written_storages) {
  const graph::Value& value = graph.values[buffer];
  if (!written_storages.contains(value.storage_id)) return graph::BufferPolicy::kReadOnly;
  std::vector<const graph::Node*> nodes;
  for (const graph::Node& node : graph.nodes) {
    const bool uses = std::any_of(node.inputs.begin(), node.inputs.end(),
                                  [&](const graph::Argument& a) { return mentions(a, buffer); });
    if (uses) nodes.push_back(&node);
  }
  const auto all = [&](auto predicate) {
    return !nodes.empty() && std::all_of(nodes.begin(), nodes.end(), [&](const graph::Node* node) {
      return predicate(*node, buffer);
    });
  };
  if (value.dtype == Dtype::kF32 && all(is_batch_norm_statistic)) {
    return graph::BufferPolicy::kBatchNorm;
  }
  const auto counts = [](const graph::Node& node, graph::ValueId id) {
    return is_increment(node, id) || is_share(node, id);
  };
  if (is_integer(value.dtype) && all(counts)) return graph::BufferPolicy::kCounter;
  return graph::BufferPolicy::kEager;
}

graph::BufferPolicy policy_of(const graph::Graph& graph, const graph::Argument& argument) {
  for (const graph::Buffer& buffer : graph.buffers) {
    if (is_value(argument, buffer.value)) return buffer.policy;
  }
  return graph::BufferPolicy::kReadOnly;
}

/// Statistics whose momentum comes from a counter are folded at the end of a step, or not at all.
void check_shares(const graph::Graph& graph) {
  for (const graph::Node& node : graph.nodes) {
    if (!is_batch_norm(node.op) || node.inputs.size() <= kMomentum ||
        !std::holds_alternative<graph::ValueRef>(node.inputs[kMomentum].content)) {
      continue;
    }
    if (policy_of(graph, node.inputs[kRunningMean]) == graph::BufferPolicy::kBatchNorm &&
        policy_of(graph, node.inputs[kMomentum]) == graph::BufferPolicy::kCounter) {
      continue;
    }
    throw Error(ErrorKind::kInvalidArgument,
                name_of(node) +
                    " averages over all batches so far (momentum = nullopt), and its statistics or "
                    "its counter are used elsewhere too; give it a momentum");
  }
}

}  // namespace

void set_buffer_policies(graph::Graph& graph) {
  std::set<int> written;
  for (const graph::Node& node : graph.nodes) {
    for (graph::ValueId value : node.writes) written.insert(graph.values[value].storage_id);
  }
  for (graph::Buffer& buffer : graph.buffers) {
    buffer.policy = policy_of(graph, buffer.value, written);
  }
  check_shares(graph);
}

}  // namespace trireme::record
