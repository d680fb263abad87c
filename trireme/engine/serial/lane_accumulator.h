#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "trireme/engine/parameters/store.h"
#include "trireme/engine/program/autograd_nodes.h"
#include "trireme/kernels/reduce/tree.h"
#include "trireme/plan/graph/uses.h"

namespace trireme::serial {

/// Sums the gradients of a step: each lane's microbatches folded left, the lanes combined by the
/// balanced tree, then the sites of a parameter in node order (DESIGN contract 1).
///
/// Confined to the thread that runs the step.
class LaneAccumulator : public program::GradientSink {
 public:
  LaneAccumulator(const parameters::ParameterStore& store, const graph::Graph& graph,
                  int num_lanes);

  void begin_step();
  void accept(int site, const at::Tensor& gradient) override;

  /// The lane's last microbatch is done.
  void end_lane();

  /// All lanes are done: afterwards the owner slot of each parameter holds its gradient.
  void end_step();

  /// Whether any backward of the step reached the parameter. It is not to be updated otherwise.
  bool has_gradient(const std::string& parameter) const { return reached_.contains(parameter); }

  /// The sums; valid after `end_step` until the next `begin_step`.
  parameters::GradientBuffers& gradients() { return buffers_[0]; }
  const parameters::GradientBuffers& gradients() const { return buffers_[0]; }

 private:
  struct Place {
    std::string parameter;
    int site;
    std::vector<at::Tensor> views;  ///< One per buffer.
    bool written = false;           ///< In the lane that is being folded.
  };

  void sum_sites(const std::string& parameter);

  const parameters::ParameterStore& store_;
  std::vector<parameters::GradientBuffers> buffers_;
  std::vector<Place> places_;      ///< By position in graph::use_sites.
  std::set<std::string> reached_;  ///< Parameters that got a gradient in the step.
  int num_lanes_;
  std::unique_ptr<kernels::LaneTree> tree_;
};

}  // namespace trireme::serial
