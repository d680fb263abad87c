#include <cmath>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "trireme/plan/graph/check.h"
#include "trireme/plan/graph/index.h"

namespace trireme::graph {
namespace {

using internal::fail_check;

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

void check_loss(const Graph& graph, const Loss& loss, const std::string& subject) {
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
  for (const Loss& loss : graph.losses) {
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

}  // namespace trireme::graph
