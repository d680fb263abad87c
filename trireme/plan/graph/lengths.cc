#include "trireme/plan/graph/lengths.h"

#include <algorithm>

#include "trireme/error.h"
#include "trireme/plan/graph/graph_check.h"

namespace trireme::graph {
namespace {

void clear_numbers(ArgumentList& arguments);

void clear_numbers(Argument& argument) {
  if (auto* list = std::get_if<ArgumentList>(&argument.content)) {
    clear_numbers(*list);
  } else if (auto* size = std::get_if<Size>(&argument.content)) {
    *size = {};
  } else if (auto* real = std::get_if<Real>(&argument.content)) {
    *real = {};
  } else if (auto* wrapped = std::get_if<WrappedNumber>(&argument.content)) {
    if (auto* number = std::get_if<Size>(&wrapped->number)) *number = {};
    if (auto* number = std::get_if<Real>(&wrapped->number)) *number = {};
  }
}

void clear_numbers(ArgumentList& arguments) {
  for (Argument& argument : arguments) clear_numbers(argument);
}

Node without_numbers(Node node) {
  clear_numbers(node.inputs);
  node.flags.batch_dependent = false;
  return node;
}

Value without_numbers(Value value) {
  std::ranges::fill(value.shape, Size());
  std::ranges::fill(value.strides, Size());
  return value;
}

std::string node_difference(const Graph& graph, const Graph& other) {
  const std::size_t most = std::max(graph.nodes.size(), other.nodes.size());
  for (std::size_t i = 0; i < most; ++i) {
    if (i >= graph.nodes.size())
      return internal::describe(other.nodes[i]) + " is in one of them alone";
    if (i >= other.nodes.size())
      return internal::describe(graph.nodes[i]) + " is in one of them alone";
    if (without_numbers(graph.nodes[i]) == without_numbers(other.nodes[i])) continue;
    const std::string first = internal::describe(graph.nodes[i]);
    const std::string second = internal::describe(other.nodes[i]);
    return first == second ? first + " takes or makes other things" : first + " is " + second;
  }
  return "";
}

std::string value_difference(const Graph& graph, const Graph& other) {
  if (graph.values.size() != other.values.size()) return "the number of tensors";
  for (std::size_t i = 0; i < graph.values.size(); ++i) {
    if (without_numbers(graph.values[i]) == without_numbers(other.values[i])) continue;
    for (const Node& node : graph.nodes) {
      if (node.id == graph.values[i].producer) {
        return "a result of " + internal::describe(node) + ": its dtype, dimensions or memory";
      }
    }
    return "value " + std::to_string(i) + ": its dtype, dimensions or memory";
  }
  return "";
}

}  // namespace

const Graph& at_lengths(const Graph& graph, const BatchSize& size) {
  if (size.shorter < 0) return graph;
  if (static_cast<std::size_t>(size.shorter) < graph.shorter.size()) {
    return graph.shorter[size.shorter];
  }
  throw Error(ErrorKind::kInvalidArgument,
              "the graph was recorded at " + std::to_string(graph.shorter.size() + 1) +
                  " padded lengths; it has none of the index " + std::to_string(size.shorter));
}

std::string structure_difference(const Graph& graph, const Graph& other) {
  if (const std::string what = node_difference(graph, other); !what.empty()) return what;
  if (const std::string what = value_difference(graph, other); !what.empty()) return what;
  if (graph.mode != other.mode || graph.microbatch != other.microbatch) {
    return "the mode, or the batch sizes that it holds for";
  }
  if (graph.inputs != other.inputs) return "the inputs";
  if (graph.parameters != other.parameters || graph.buffers != other.buffers) {
    return "the parameters or buffers";
  }
  if (graph.constants != other.constants) return "a constant tensor";
  if (graph.outputs != other.outputs) return "the outputs";
  return graph.losses == other.losses ? "" : "the losses";
}

std::string lengths_text(const Graph& graph) {
  std::string text;
  for (const auto& [name, length] : graph.lengths) {
    text += (text.empty() ? "" : ", ") + name + " " + std::to_string(length);
  }
  return text;
}

void check_shorter(const Graph& graph) {
  for (const Graph& other : graph.shorter) {
    const std::string subject = "the graph at " + lengths_text(other);
    if (!other.shorter.empty()) internal::fail_check(subject, "it has others itself");
    if (other.lengths == graph.lengths)
      internal::fail_check(subject, "its lengths are the longest");
    for (const auto& [name, length] : other.lengths) {
      const auto longest = graph.lengths.find(name);
      if (longest == graph.lengths.end() || length > longest->second || length < 0) {
        internal::fail_check(subject, "'" + name + "' is not among the longest, or longer");
      }
    }
    if (other.lengths.size() != graph.lengths.size()) {
      internal::fail_check(subject, "it lacks a length");
    }
    check(other);
    const std::string what = structure_difference(graph, other);
    if (!what.empty()) internal::fail_check(subject, "it differs beyond numbers: " + what);
  }
}

}  // namespace trireme::graph
