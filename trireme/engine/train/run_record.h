#pragma once

#include <ATen/core/Tensor.h>

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "trireme/engine/optim/optimizer.h"
#include "trireme/engine/parameters/store.h"
#include "trireme/engine/train/workload.h"

namespace trireme::train {

using Tensors = std::map<std::string, at::Tensor>;

/// What some steps of training leave behind, copied.
struct RunRecord {
  std::vector<double> losses;      ///< By step.
  std::vector<Tensors> gradients;  ///< By step; of parameters that had one.
  Tensors weights;                 ///< After the last step.
  Tensors buffers;                 ///< Likewise.
};

/// Whether type, shape and every bit are the same; strides do not count.
bool same_bits(const at::Tensor& a, const at::Tensor& b);

/// |a - b| / |b|; infinite where the shapes differ.
double relative_difference(const at::Tensor& a, const at::Tensor& b);

/// The gradient of a parameter that `store` owns, as it lies in its owner's slot.
at::Tensor owner_view(const parameters::ParameterStore& store,
                      const parameters::GradientBuffers& gradients, const std::string& name);

/// Copies of the gradients of the parameters that `store` owns.
Tensors gradients_of(const parameters::ParameterStore& store,
                     const parameters::GradientBuffers& gradients,
                     const optim::HasGradient& has_gradient);

/// Fills in weights that `store` holds and buffers.
void take_state(const Workload& workload, const parameters::ParameterStore& store,
                RunRecord& record);

/// How one execution of some steps compares with another.
struct Comparison {
  std::string against;  ///< `uncut`, `plain loop` or `serial executor`.
  bool must_be_bitwise = true;
  bool is_bitwise = true;
  bool is_finite = true;         ///< The reference's losses are; else equal bits say little.
  bool has_all = true;           ///< Each holds tensors of all the names that the other holds.
  std::string first_difference;  ///< The first thing that is not the same bits; empty if none.
  double worst_loss = 0;         ///< Largest relative difference of a step's loss.
  double worst_gradient = 0;     ///< Of the first step, |difference| / |norm| of a tensor.
  double worst_weight = 0;       ///< After the last step, likewise.
  double weight_limit = std::numeric_limits<double>::infinity();
  bool passes() const;
};

/// Compares everything that `reference` holds with `run`; what only `run` holds is a difference
/// too.
void compare(const RunRecord& run, const RunRecord& reference, Comparison& result);

}  // namespace trireme::train
