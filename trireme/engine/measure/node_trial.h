#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>
#include <torch/csrc/autograd/edge.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "trireme/engine/program/node_call.h"
#include "trireme/engine/record/recording.h"

namespace trireme::measure {

/// Tensors of a forward pass by value id, without history; undefined where there is none now.
using Values = std::vector<at::Tensor>;

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

  /// recording, values   outlive the trial. batch: samples in `values`.
  NodeTrial(const record::Recording& recording, int position, const Values& values,
            std::int64_t batch);

  /// New inputs; what the node writes is copied, so that it finds the same values each time.
  void prepare();

  /// Runs the node on `prepare`d inputs.
  void forward();

  /// Runs the node on `values` themselves, as the walk through the graph does; the outputs, by
  /// value id, replace them.
  void forward_in_place(Values& values);

  /// Makes gradients of the outputs and lets go of all tensors but these and what the backward
  /// holds.
  void keep_graph();

  /// Runs the backward after `keep_graph`. The gradients live until the next `prepare`.
  void backward(Part part);

  /// Lets go of what the backward holds.
  void release_graph() { roots_.clear(); }

  /// Whether the backward makes gradients of that kind.
  bool has(Part part) const { return !edges_of(part).empty(); }

  const graph::Node& node() const { return node_; }

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
  const Values& values_;
  std::map<graph::ValueId, int> slot_of_;
  std::vector<graph::ValueId> inputs_;  ///< That have a slot, each once.
  std::set<graph::ValueId> written_;    ///< Inputs whose memory the node writes.
  program::NodeCall call_;
  std::vector<at::Tensor> slots_;
  torch::autograd::edge_list input_edges_;
  torch::autograd::edge_list weight_edges_;
  torch::autograd::edge_list roots_;
  std::vector<at::Tensor> seeds_;  ///< Of the roots.
  std::vector<at::Tensor> gradients_;
};

}  // namespace trireme::measure
