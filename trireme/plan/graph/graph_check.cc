#include "trireme/plan/graph/graph_check.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>

#include "trireme/error.h"
#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/graph/lengths.h"

namespace trireme::graph {
namespace {

using internal::fail_check;
using internal::is_moderate;

/// Names that may each be taken once.
class Names {
 public:
  void take(const std::string& name, const std::string& subject) {
    if (name.empty()) fail_check(subject, "it has no name");
    if (!taken_.insert(name).second) fail_check(subject, "the name '" + name + "' is taken");
  }

 private:
  std::set<std::string> taken_;
};

/// Fixed dimensions whose product is moderate. Returns the product.
std::int64_t check_fixed(const Graph& graph, ValueId id, const std::string& subject) {
  std::int64_t elements = 1;
  for (const Size& dim : graph.values[id].shape) {
    if (!dim.is_fixed()) fail_check(subject, "its shape must not depend on the batch");
    // Both factors are at most 2^40 until the product is seen to be more.
    if (dim.fixed > 0 && elements > kMaxExtent / dim.fixed) {
      fail_check(subject, "it has more than " + std::to_string(kMaxExtent) + " elements");
    }
    elements *= dim.fixed;
  }
  return elements;
}

void check_input(const Graph& graph, const Input& input, const std::string& subject) {
  const std::vector<Size>& shape = graph.values[input.value].shape;
  if (input.batch_dim == -1) {
    if (!shape.empty()) fail_check(subject, "a step scalar must be 0-dim");
    return;
  }
  if (input.batch_dim < 0 || static_cast<std::size_t>(input.batch_dim) >= shape.size()) {
    fail_check(subject, "batch_dim " + std::to_string(input.batch_dim) + " is not one of its " +
                            std::to_string(shape.size()) + " dimensions");
  }
  if (graph.microbatch > 0) {
    const std::int64_t samples = shape[input.batch_dim].fixed;
    if (samples < 1 || samples % graph.microbatch != 0) {
      fail_check(subject, "dimension " + std::to_string(input.batch_dim) + " is " +
                              std::to_string(samples) + ", no multiple of the microbatch size " +
                              std::to_string(graph.microbatch) + " that the graph holds for");
    }
    return;
  }
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    const bool is_batch = static_cast<int>(dim) == input.batch_dim;
    if (is_batch ? shape[dim].per_sample < 1 || shape[dim].fixed != 0 : !shape[dim].is_fixed()) {
      fail_check(subject, "dimension " + std::to_string(dim) + " should " +
                              (is_batch ? "be a multiple of the batch" : "not grow with it") +
                              ", but is " + std::to_string(shape[dim].per_sample) + " * batch + " +
                              std::to_string(shape[dim].fixed));
    }
  }
}

bool can_have_gradient(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF64:
    case Dtype::kF32:
    case Dtype::kF16:
    case Dtype::kBf16:
    case Dtype::kC64:
    case Dtype::kC128:
      return true;
    default:
      return false;
  }
}

/// Trainable parameters are moved into flat memory, so nothing else may live in theirs.
void check_sharing(const Graph& graph) {
  std::unordered_map<int, std::string> owners;
  for (const Parameter& parameter : graph.parameters) {
    const Value& value = graph.values[parameter.value];
    if (!value.requires_grad) continue;
    const auto [owner, is_new] = owners.emplace(value.storage_id, parameter.name);
    if (!is_new) {
      fail_check("parameter '" + parameter.name + "'",
                 "it shares memory with parameter '" + owner->second +
                     "'; register one tensor under both names, or make a copy");
    }
  }
  const auto refuse = [&](const std::string& subject, ValueId id) {
    const auto owner = owners.find(graph.values[id].storage_id);
    if (owner == owners.end()) return;
    fail_check(subject, "it shares memory with the trainable parameter '" + owner->second +
                            "'; make a copy");
  };
  for (const Parameter& parameter : graph.parameters) {
    if (graph.values[parameter.value].requires_grad) continue;
    refuse("parameter '" + parameter.name + "'", parameter.value);
  }
  for (const Buffer& buffer : graph.buffers) {
    refuse("buffer '" + buffer.name + "'", buffer.value);
  }
}

}  // namespace

void internal::check_boundaries(const Graph& graph) {
  Names input_names, state_names;
  for (const Input& input : graph.inputs) {
    const std::string subject = "input '" + input.name + "'";
    input_names.take(input.name, subject);
    check_input(graph, input, subject);
  }
  for (const Parameter& parameter : graph.parameters) {
    const std::string subject = "parameter '" + parameter.name + "'";
    state_names.take(parameter.name, subject);
    for (const std::string& alias : parameter.aliases) state_names.take(alias, subject);
    check_fixed(graph, parameter.value, subject);
    const Value& value = graph.values[parameter.value];
    if (value.requires_grad && !can_have_gradient(value.dtype)) {
      fail_check(subject, "its dtype " + std::string(trireme::to_text(value.dtype)) +
                              " cannot have a gradient");
    }
  }
  for (const Buffer& buffer : graph.buffers) {
    const std::string subject = "buffer '" + buffer.name + "'";
    state_names.take(buffer.name, subject);
    for (const std::string& alias : buffer.aliases) state_names.take(alias, subject);
    check_fixed(graph, buffer.value, subject);
  }
  for (const ConstantTensor& constant : graph.constants) {
    const std::string subject = "constant " + std::to_string(constant.value);
    const std::int64_t elements = check_fixed(graph, constant.value, subject);
    const auto bytes =
        static_cast<std::size_t>(elements) * size_bytes(graph.values[constant.value].dtype);
    if (constant.bytes.size() != bytes) {
      fail_check(subject, "expected " + std::to_string(bytes) + " bytes of data, got " +
                              std::to_string(constant.bytes.size()));
    }
  }
  check_sharing(graph);
}

namespace {

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
  internal::check_outputs(graph);
  check_shorter(graph);
}

}  // namespace trireme::graph
