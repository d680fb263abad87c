#include "trireme/engine/program/torch_failure.h"

#include <c10/util/Exception.h>

#include <new>

#include "trireme/engine/record/graph_difference.h"
#include "trireme/engine/record/torch_terms.h"
#include "trireme/plan/graph/graph_queries.h"

namespace trireme::program {
namespace {

/// `input 'label' i64 [8]`, `parameter 'head.weight' f32 [4, 16]`, `value 17 f32 [8, 4]`.
std::string describe(const graph::Graph& graph, graph::ValueId id, std::int64_t batch) {
  const graph::Value& value = graph.values[id];
  std::string text = "value " + std::to_string(id);
  for (const graph::Input& input : graph.inputs) {
    if (input.value == id) text = "input '" + input.name + "'";
  }
  for (const graph::Parameter& parameter : graph.parameters) {
    if (parameter.value == id) text = "parameter '" + parameter.name + "'";
  }
  for (const graph::Buffer& buffer : graph.buffers) {
    if (buffer.value == id) text = "buffer '" + buffer.name + "'";
  }
  text += " " + std::string(to_text(value.dtype)) + " [";
  for (std::size_t d = 0; d < value.shape.size(); ++d) {
    text += (d == 0 ? "" : ", ") + std::to_string(value.shape[d].at(batch));
  }
  return text + "]";
}

std::string describe_inputs(const graph::Graph& graph, const graph::Node& node,
                            std::int64_t batch) {
  std::string text;
  for (const graph::ValueId id : graph::input_values(node)) {
    text += (text.empty() ? "; it takes " : ", ") + describe(graph, id, batch);
  }
  return text + "; microbatches are of " + std::to_string(batch) + " samples";
}

std::string text_of(const std::exception& failure) {
  const auto* torch = dynamic_cast<const c10::Error*>(&failure);
  return torch == nullptr ? failure.what() : record::text_of(*torch);
}

}  // namespace

Error error_of(const std::exception& failure) {
  if (const auto* error = dynamic_cast<const Error*>(&failure)) return *error;
  if (const auto* error = dynamic_cast<const c10::Error*>(&failure)) {
    const ErrorKind kind = record::kind_of(*error);
    return {kind, "torch refused an operation: " + text_of(failure) + record::advice(kind)};
  }
  if (dynamic_cast<const std::bad_alloc*>(&failure) != nullptr) {
    return {ErrorKind::kResourceExhausted, "out of memory"};
  }
  return {ErrorKind::kModelFailure, std::string("a rank failed: ") + failure.what()};
}

Error node_failure(const std::string& doing, const graph::Graph& graph, const graph::Node& node,
                   std::int64_t batch, const std::exception& failure) {
  if (dynamic_cast<const Error*>(&failure) != nullptr) return error_of(failure);
  const ErrorKind kind = error_of(failure).kind();
  return {kind, doing + " " + record::name_of(node) + " failed: " + text_of(failure) +
                    describe_inputs(graph, node, batch) + record::advice(kind)};
}

}  // namespace trireme::program
