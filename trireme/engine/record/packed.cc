#include "trireme/engine/record/packed.h"

#include <ATen/Functions.h>
#include <torch/library.h>

#include <map>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "trireme/engine/record/compare.h"
#include "trireme/engine/record/size_problem.h"
#include "trireme/plan/graph/index.h"

namespace trireme::record {
namespace {

/// (Tensor data, Tensor batch_sizes, bool batch_first, Scalar padding_value, int total_length, bool
/// is_given).
constexpr const char* kCheckedPad = "trireme::pad_packed_sequence";
constexpr std::size_t kTotalLength = 4;
constexpr std::size_t kIsGiven = 5;

std::tuple<at::Tensor, at::Tensor> pad(const at::Tensor& data, const at::Tensor& batch_sizes,
                                       bool batch_first, const at::Scalar& padding_value,
                                       std::int64_t total_length, bool is_given) {
  TORCH_CHECK(is_given || batch_sizes.size(0) == total_length, "the longest packed sequence had ",
              total_length, " steps when the model was recorded and has ", batch_sizes.size(0),
              " now: the padded result would have another shape; give pad_packed_sequence a "
              "total_length (one that is given is known by a recorded batch that is shorter)");
  return at::_pad_packed_sequence(data, batch_sizes, batch_first, padding_value, total_length);
}

std::int64_t dimension(const graph::Graph& graph, graph::ValueId value, std::size_t dim) {
  return graph.values[value].shape[dim].fixed;
}

/// Number of rows in this recording, and the most there can be.
using Rows = std::map<std::int64_t, std::int64_t>;

/// Torch's recurrent layers over packed sequences: their states have no rows.
bool is_recurrent(const graph::Node& node) {
  return node.overload == "data" && (node.op == "aten::lstm" || node.op == "aten::gru" ||
                                     node.op == "aten::rnn_tanh" || node.op == "aten::rnn_relu");
}

std::size_t num_ragged_outputs(const graph::Node& node) {
  if (node.op == kPack) return 2;
  return is_recurrent(node) ? 1 : 0;
}

void mark(graph::Value& value, std::int64_t most) {
  value.shape[0].fixed = most;
  value.is_ragged = true;
}

/// Marks the results of `pack`: the steps of all sequences, and how many sequences have each step.
Rows mark_packed(graph::Graph& graph, const graph::Node& pack) {
  const graph::ValueId padded = std::get<graph::ValueRef>(pack.inputs[0].content).value;
  const bool batch_first = std::get<bool>(pack.inputs[2].content);
  const std::int64_t steps = dimension(graph, padded, batch_first ? 1 : 0);
  const std::int64_t most = steps * dimension(graph, padded, batch_first ? 0 : 1);
  const Rows rows = {{dimension(graph, pack.outputs[0], 0), most}};
  mark(graph.values[pack.outputs[0]], most);
  mark(graph.values[pack.outputs[1]], steps);
  return rows;
}

void require_same_length(const graph::Node& a, const graph::Node& b) {
  const auto length = [](const graph::Node& node) {
    return std::to_string(std::get<graph::Size>(node.inputs[kTotalLength].content).fixed);
  };
  if (length(a) == length(b)) return;
  throw SizeProblem(name_of(a) + ": packed sequences are padded to " + length(a) +
                    " steps in one recording and to " + length(b) +
                    " in another, as far as the longest of the microbatch, so that the shape of "
                    "the result depends on data; give pad_packed_sequence a total_length");
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(trireme, library) {
  library.def(
      "pad_packed_sequence(Tensor data, Tensor batch_sizes, bool batch_first, Scalar "
      "padding_value, int total_length, bool is_given) -> (Tensor, Tensor)",
      pad);
}

void mark_ragged(graph::Graph& graph) {
  std::map<graph::ValueId, Rows> ragged;  // what the rows of each may have been
  for (const graph::Node& node : graph.nodes) {
    if (node.outputs.size() < num_ragged_outputs(node))
      continue;  // it failed, and the program went on
    if (node.op == kPack) ragged[node.outputs[0]] = mark_packed(graph, node);
    if (node.op == kPack || node.op == kCheckedPad) continue;
    Rows rows;
    for (const graph::ValueId input : graph::input_values(node)) {
      if (const auto known = ragged.find(input); known != ragged.end()) {
        rows.insert(known->second.begin(), known->second.end());
      }
    }
    const std::size_t num_outputs =
        is_recurrent(node) ? num_ragged_outputs(node) : node.outputs.size();
    for (std::size_t i = 0; i < num_outputs; ++i) {
      const graph::ValueId output = node.outputs[i];
      if (output < 0 || ragged.contains(output)) continue;
      graph::Value& value = graph.values[output];
      if (value.source != graph::ValueSource::kNode || value.shape.empty()) continue;
      const auto found = rows.find(value.shape[0].fixed);
      if (found == rows.end()) continue;
      mark(value, found->second);
      ragged[output] = rows;
    }
  }
}

void take_padded_length(graph::Node& pad, std::int64_t longest) {
  pad.op = kCheckedPad;
  pad.overload.clear();
  const auto& total = std::get<graph::Size>(pad.inputs[kTotalLength].content);
  pad.inputs.push_back({total.fixed != longest});
}

void agree_on_padded_lengths(std::initializer_list<graph::Graph*> recordings) {
  std::map<graph::NodeId, std::vector<graph::Node*>> pads;
  for (graph::Graph* graph : recordings) {
    for (graph::Node& node : graph->nodes) {
      if (node.op == kCheckedPad) pads[node.id].push_back(&node);
    }
  }
  for (const auto& [id, nodes] : pads) {
    bool is_given = false;
    for (const graph::Node* node : nodes) {
      is_given = is_given || std::get<bool>(node->inputs[kIsGiven].content);
      require_same_length(*nodes[0], *node);
    }
    for (graph::Node* node : nodes) node->inputs[kIsGiven] = {is_given};
  }
}

}  // namespace trireme::record
