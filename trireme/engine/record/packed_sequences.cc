#include "trireme/engine/record/packed_sequences.h"

#include <ATen/Functions.h>
#include <torch/library.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "trireme/engine/record/generalise.h"
#include "trireme/engine/record/graph_difference.h"
#include "trireme/plan/graph/graph_queries.h"

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
  TORCH_CHECK(
      is_given || batch_sizes.size(0) == total_length, "the longest packed sequence had ",
      total_length, " steps when the model was recorded and has ", batch_sizes.size(0),
      " now: the padded result would have another shape; give pad_packed_sequence a "
      "total_length. Where it has one, no recorded batch was shorter, so that nothing tells: "
      "mark the code from packing to padding with trireme::opaque");
  return at::_pad_packed_sequence(data, batch_sizes, batch_first, padding_value, total_length);
}

using Recordings = std::span<graph::Graph* const>;

bool have_same_calls(Recordings recordings) {
  const std::vector<graph::Node>& first = recordings[0]->nodes;
  return std::ranges::all_of(recordings, [&](const graph::Graph* other) {
    return std::ranges::equal(first, other->nodes, same_call);
  });
}

/// A length that depends on data, and the most it can be, by recording.
struct Extent {
  std::vector<std::int64_t> now, most;
};

/// Those of packed sequences: the steps of all, and of the longest.
struct PackedExtents {
  Extent rows, steps;
};

PackedExtents extents_of(Recordings recordings, std::size_t position) {
  PackedExtents result;
  for (const graph::Graph* graph : recordings) {
    const graph::Node& pack = graph->nodes[position];
    const auto shape_of = [&](graph::ValueId id) -> const auto& { return graph->values[id].shape; };
    const auto& padded = shape_of(std::get<graph::ValueRef>(pack.inputs[0].content).value);
    const bool batch_first = std::get<bool>(pack.inputs[2].content);
    const std::int64_t steps = padded[batch_first ? 1 : 0].fixed;
    result.rows.now.push_back(shape_of(pack.outputs[0])[0].fixed);
    result.rows.most.push_back(steps * padded[batch_first ? 0 : 1].fixed);
    result.steps.now.push_back(shape_of(pack.outputs[1])[0].fixed);
    result.steps.most.push_back(steps);
  }
  return result;
}

/// That of the rows of tokens: (Tensor lengths, int length) -> (Tensor rows, Tensor offsets).
Extent token_rows_of(Recordings recordings, std::size_t position) {
  Extent rows;
  for (const graph::Graph* graph : recordings) {
    const graph::Node& node = graph->nodes[position];
    const auto& lengths = graph->values[std::get<graph::ValueRef>(node.inputs[0].content).value];
    rows.now.push_back(graph->values[node.outputs[0]].shape[0].fixed);
    rows.most.push_back(lengths.shape[0].fixed *
                        std::get<graph::Size>(node.inputs[1].content).fixed);
  }
  return rows;
}

/// Replaces what is `extent` in all recordings. Whether something was.
bool widen(Recordings recordings, graph::ValueId id, std::vector<graph::Size> graph::Value::* part,
           const Extent& extent) {
  bool is_found = false;
  for (std::size_t i = 0; i < (recordings[0]->values[id].*part).size(); ++i) {
    bool is_everywhere = true;
    for (std::size_t r = 0; r < recordings.size(); ++r) {
      const std::vector<graph::Size>& sizes = recordings[r]->values[id].*part;
      is_everywhere = is_everywhere && i < sizes.size() && sizes[i].fixed == extent.now[r];
    }
    if (!is_everywhere) continue;
    is_found = true;
    for (std::size_t r = 0; r < recordings.size(); ++r) {
      (recordings[r]->values[id].*part)[i].fixed = extent.most[r];
    }
  }
  return is_found;
}

/// Torch's recurrent layers over packed sequences: data, batch sizes, ...; their states have no
/// rows.
bool is_recurrent(const graph::Node& node) {
  return node.overload == "data" && (node.op == "aten::lstm" || node.op == "aten::gru" ||
                                     node.op == "aten::rnn_tanh" || node.op == "aten::rnn_relu");
}

/// Follows extents through the nodes of all recordings.
class RaggedMarker {
 public:
  explicit RaggedMarker(Recordings recordings) : recordings_(recordings) {}

  void run() {
    for (std::size_t p = 0; p < recordings_[0]->nodes.size(); ++p) {
      const graph::Node& node = recordings_[0]->nodes[p];
      if (node.op == kPack && node.outputs.size() == 2) {
        const PackedExtents extents = extents_of(recordings_, p);
        mark(node.outputs[0], {extents.rows});
        mark(node.outputs[1], {extents.steps});
      } else if (node.op == kTokenRows) {
        mark(node.outputs[0], {token_rows_of(recordings_, p)});
      } else if (is_recurrent(node) && !node.outputs.empty()) {
        mark(node.outputs[0], of_inputs(node, 1));
      } else if (node.op != kCheckedPad) {
        const std::vector<Extent> extents = of_inputs(node, graph::input_values(node).size());
        for (const graph::ValueId output : node.outputs) mark(output, extents);
      }
    }
  }

 private:
  std::vector<Extent> of_inputs(const graph::Node& node, std::size_t num_inputs) const {
    std::vector<Extent> extents;
    const std::vector<graph::ValueId> inputs = graph::input_values(node);
    for (std::size_t i = 0; i < num_inputs; ++i) {
      const auto known = extents_.find(inputs[i]);
      if (known == extents_.end()) continue;
      extents.insert(extents.end(), known->second.begin(), known->second.end());
    }
    return extents;
  }

  void mark(graph::ValueId id, const std::vector<Extent>& extents) {
    if (id < 0 || extents_.contains(id)) return;
    if (recordings_[0]->values[id].source != graph::ValueSource::kNode) return;
    for (const Extent& extent : extents) {
      if (!widen(recordings_, id, &graph::Value::shape, extent)) continue;
      widen(recordings_, id, &graph::Value::strides, extent);
      for (graph::Graph* graph : recordings_) graph->values[id].is_ragged = true;
      extents_[id].push_back(extent);
    }
  }

  const Recordings recordings_;
  std::map<graph::ValueId, std::vector<Extent>> extents_;  ///< Of ragged values.
};

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

void mark_ragged(Recordings recordings) {
  if (have_same_calls(recordings)) RaggedMarker(recordings).run();
}

void take_padded_length(graph::Node& pad, std::int64_t longest) {
  pad.op = kCheckedPad;
  pad.overload.clear();
  const auto& total = std::get<graph::Size>(pad.inputs[kTotalLength].content);
  pad.inputs.push_back({total.fixed != longest});
}

bool has_unsure_lengths(const graph::Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const graph::Node& node) {
    return node.op == kCheckedPad && !std::get<bool>(node.inputs[kIsGiven].content);
  });
}

void agree_on_padded_lengths(Recordings recordings) {
  if (!have_same_calls(recordings)) return;
  for (std::size_t p = 0; p < recordings[0]->nodes.size(); ++p) {
    if (recordings[0]->nodes[p].op != kCheckedPad) continue;
    bool is_given = false;
    for (const graph::Graph* graph : recordings) {
      is_given = is_given || std::get<bool>(graph->nodes[p].inputs[kIsGiven].content);
      require_same_length(recordings[0]->nodes[p], graph->nodes[p]);
    }
    for (graph::Graph* graph : recordings) graph->nodes[p].inputs[kIsGiven] = {is_given};
  }
}

}  // namespace trireme::record
