#include <limits>
#include <map>
#include <set>
#include <unordered_map>

#include "trireme/plan/graph/bytes.h"
#include "trireme/plan/graph/check.h"

namespace trireme::graph {
namespace {

using internal::fail_check;

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

}  // namespace trireme::graph
