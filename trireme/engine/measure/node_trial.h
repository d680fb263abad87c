#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>
#include <torch/csrc/autograd/function.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "trireme/engine/program/node_call.h"
#include "trireme/engine/record/recording.h"
#include "trireme/plan/graph/graph.h"

namespace trireme::measure {

/// By value id: whether its gradient goes to parameters alone. So do those of parameters and of
/// what is computed from them without the batch (`weight.t()`, a position bias): no stage before
/// waits for it, it belongs to the weight part W of a backward.
using WeightValues = std::vector<bool>;

/// Cost linear in nodes and arguments.
WeightValues weight_values(const graph::Graph& graph);

/// What a node's cost depends on where the batch has `batch` samples, as text for people. Nodes
/// with the same key are measured once:
///
///     aten::addmm(f32[24] weight, f32[4, 12] gradient, f32[12, 24]{1, 12} weight, 1, 1)
///     aten::select.int(f32[4, 7, 16] gradient) -> f32[4, 16]{112, 1}
///
/// Operator, tensors (dtype, shape, strides where not contiguous, which gradient is wanted), other
/// arguments, gradient mode and autocast. Arguments of a view do not matter, but what comes out
/// does.
///
/// weights   of the graph: those are marked `weight`, others that want a gradient `gradient`.
std::string node_key(const graph::Graph& graph, const graph::Node& node, std::int64_t batch,
                     const WeightValues& weights);

/// A forward pass between two nodes.
struct ForwardState {
  std::int64_t num_samples = 0;
  std::vector<at::Tensor> values;  ///< By value id, without history; undefined where unused.
  WeightValues weights;
};

/// One node at its place in a forward pass: run on the values that it really gets, forward and
/// backward, apart from the others. Every tensor that wants a gradient enters through a stand-in,
/// whose edge ends the backward.
///
///     trial.prepare(); trial.forward(); trial.keep_graph(); trial.backward(part);
///
/// Caller-synchronised.
class NodeTrial {
 public:
  /// Which gradients a backward makes.
  enum class Part { kInputs, kWeights, kAll };

  /// recording, state   outlive the trial.
  NodeTrial(const record::Recording& recording, int position, ForwardState& state);

  /// What the node's cost depends on: `node_key`.
  std::string key() const;

  /// New inputs; what the node writes is copied, so that it finds the same values each time.
  void prepare();

  /// Runs the node on `prepare`d inputs.
  void forward();

  /// Runs the node on the state itself, which goes on to the next node.
  void advance();

  /// Makes gradients of the outputs and lets go of all tensors but these and what the backward
  /// holds.
  void keep_graph();

  /// Runs the backward after `keep_graph`. The gradients live until the next `prepare`.
  void backward(Part part);

  /// Lets go of what the backward holds.
  void release_graph() { roots_.clear(); }

  /// Whether the backward makes gradients of that kind.
  bool has(Part part) const { return !edges_of(part).empty(); }

  /// Memory of each of graph::input_values after `prepare`, and of each of Node::outputs after
  /// `forward`; null where there is none.
  std::vector<c10::Storage> input_storages() const;
  std::vector<c10::Storage> output_storages() const;

  /// After `backward`: bytes of gradients in memory of their own.
  std::int64_t gradient_bytes() const;

 private:
  void lay_out_slots();
  void fill(bool copy_written);
  void run();
  at::Tensor bind(graph::ValueId parameter);
  torch::autograd::edge_list edges_of(Part part) const;
  const at::Tensor& tensor_of(graph::ValueId id) const;

  const record::Recording& recording_;
  const graph::Node& node_;
  ForwardState& state_;
  std::map<graph::ValueId, int> slot_of_;
  std::vector<graph::ValueId> inputs_;  ///< That have a slot, each once.
  std::set<graph::ValueId> written_;    ///< Inputs whose memory the node writes.
  program::NodeCall call_;
  std::vector<at::Tensor> slots_;
  torch::autograd::edge_list parameter_edges_;
  torch::autograd::edge_list input_edges_;
  torch::autograd::edge_list weight_edges_;  ///< Beside the parameters'.
  torch::autograd::edge_list roots_;
  std::vector<at::Tensor> seeds_;  ///< Of the roots.
  std::vector<at::Tensor> gradients_;
};

}  // namespace trireme::measure
