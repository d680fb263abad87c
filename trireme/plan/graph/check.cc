#include "trireme/plan/graph/check.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "trireme/error.h"

namespace trireme::graph {
namespace {

using internal::fail_check;
using internal::is_moderate;

constexpr std::array<std::string_view, 6> kSourceNames = {
    "an input", "a step scalar", "a parameter", "a buffer", "a constant", "the output of a node"};

void check_extents(const std::string& subject, const Value& value) {
  if (value.shape.size() != value.strides.size()) {
    fail_check(subject, "its shape has " + std::to_string(value.shape.size()) +
                            " dimensions, its strides " + std::to_string(value.strides.size()));
  }
  for (const Size& dim : value.shape) {
    if (!is_moderate(dim.fixed) || dim.per_sample < 0 || dim.per_sample > kMaxExtent ||
        (dim.is_fixed() && dim.fixed < 0)) {
      fail_check(subject,
                 "a dimension is negative or too large: " + std::to_string(dim.per_sample) +
                     " * batch + " + std::to_string(dim.fixed));
    }
  }
  for (const Size& stride : value.strides) {
    if (!is_moderate(stride.fixed) || !is_moderate(stride.per_sample)) {
      fail_check(subject, "a stride is too large: " + std::to_string(stride.per_sample) +
                              " * batch + " + std::to_string(stride.fixed));
    }
  }
  if (value.is_ragged && (value.source != ValueSource::kNode || value.shape.empty())) {
    fail_check(subject, "only the result of a node that has dimensions is ragged");
  }
  if (value.storage_id < 0) fail_check(subject, "it has no storage_id");
}

/// Counts the entries that each value has as what its `source` says, and refuses any other.
class SourceLedger {
 public:
  explicit SourceLedger(const Graph& graph) : graph_(graph), num_entries_(graph.values.size(), 0) {}

  void enter(ValueId id, ValueSource source, const std::string& subject) {
    const auto name = [](ValueSource s) {
      return std::string(kSourceNames[static_cast<std::size_t>(s)]);
    };
    if (id < 0 || static_cast<std::size_t>(id) >= graph_.values.size()) {
      fail_check(subject, "value " + std::to_string(id) + " is not among the " +
                              std::to_string(graph_.values.size()) + " values");
    }
    const ValueSource actual = graph_.values[id].source;
    if (actual != source) {
      fail_check(subject, "value " + std::to_string(id) + " should be " + name(source) +
                              ", but says it is " + name(actual));
    }
    if (++num_entries_[id] > 1) {
      fail_check(subject, "value " + std::to_string(id) + " has another source already");
    }
  }

  void finish() const {
    for (std::size_t id = 0; id < num_entries_.size(); ++id) {
      if (num_entries_[id] == 0) {
        fail_check("value " + std::to_string(id), "it has no source: nothing produces it");
      }
    }
  }

 private:
  const Graph& graph_;
  std::vector<int> num_entries_;
};

/// Enters the outputs that `node` produces; those it hands on are `check_nodes`' matter.
void enter_outputs(const Graph& graph, const Node& node, SourceLedger& ledger) {
  for (const ValueId id : node.outputs) {
    if (id == -1) continue;
    const bool is_known = id >= 0 && static_cast<std::size_t>(id) < graph.values.size();
    if (is_known && graph.values[id].producer != node.id) continue;
    ledger.enter(id, ValueSource::kNode, internal::describe(node) + ": outputs");
  }
}

}  // namespace

void internal::fail_check(const std::string& subject, const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, "graph: " + subject + ": " + problem);
}

bool internal::is_moderate(std::int64_t number) {
  return number >= -kMaxExtent && number <= kMaxExtent;
}

std::string internal::describe(const Node& node) {
  const std::string overload = node.overload.empty() ? "" : "." + node.overload;
  return "node " + std::to_string(node.id) + " '" + node.name + "' (" + node.op + overload + ")";
}

void internal::check_values(const Graph& graph) {
  for (std::size_t id = 0; id < graph.values.size(); ++id) {
    const Value& value = graph.values[id];
    const std::string subject = "value " + std::to_string(id);
    check_extents(subject, value);
    const bool grows = std::any_of(value.shape.begin(), value.shape.end(),
                                   [](const Size& dim) { return !dim.is_fixed(); });
    if (graph.microbatch > 0 && grows) {
      fail_check(subject, "it grows with the batch, but the graph holds for " +
                              std::to_string(graph.microbatch) + " samples alone");
    }
    if ((value.source == ValueSource::kNode) != (value.producer >= 0)) {
      fail_check(subject, "the producer " + std::to_string(value.producer) +
                              " does not go with its source, " +
                              std::string(kSourceNames[static_cast<std::size_t>(value.source)]));
    }
  }
  SourceLedger ledger(graph);
  for (const Input& input : graph.inputs) {
    ledger.enter(input.value,
                 input.batch_dim == -1 ? ValueSource::kStepScalar : ValueSource::kInput,
                 "input '" + input.name + "'");
  }
  for (const Parameter& parameter : graph.parameters) {
    ledger.enter(parameter.value, ValueSource::kParameter, "parameter '" + parameter.name + "'");
  }
  for (const Buffer& buffer : graph.buffers) {
    ledger.enter(buffer.value, ValueSource::kBuffer, "buffer '" + buffer.name + "'");
  }
  for (const ConstantTensor& constant : graph.constants) {
    ledger.enter(constant.value, ValueSource::kConstant, "constants");
  }
  for (const Node& node : graph.nodes) enter_outputs(graph, node, ledger);
  ledger.finish();
}

void check_samples(const Graph& graph, std::int64_t num_samples) {
  if (graph.microbatch == 0 || graph.microbatch == num_samples) return;
  throw Error(ErrorKind::kInvalidArgument,
              "the graph was recorded at a microbatch size of " + std::to_string(graph.microbatch) +
                  " and holds for that alone, not for " + std::to_string(num_samples) +
                  " samples; record the model again at the size that is to run, or make its code "
                  "independent of the batch size");
}

void check(const Graph& graph) {
  if (graph.microbatch < 0 || graph.microbatch > kMaxExtent) {
    fail_check("microbatch", std::to_string(graph.microbatch) + " is no number of samples");
  }
  internal::check_values(graph);
  internal::check_boundaries(graph);
  internal::check_nodes(graph);
  internal::check_losses(graph);
}

}  // namespace trireme::graph
