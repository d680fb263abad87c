#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "trireme/engine/record/generator.h"
#include "trireme/model.h"
#include "trireme/plan/graph/graph.h"

namespace trireme::record {

/// Tensors, put back as they were kept when it ends.
class TensorKeeper {
 public:
  TensorKeeper() = default;
  ~TensorKeeper();
  TensorKeeper(const TensorKeeper&) = delete;
  TensorKeeper& operator=(const TensorKeeper&) = delete;

  /// The first time of each counts. Cost: a copy.
  void keep(const at::Tensor& tensor);

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> kept_;  ///< And their copies.
};

/// What a forward may change, put back when the guard ends: the buffers of a model, parameters that
/// its forward writes, what they say of gradients, their `.grad`, and the default generator, whose
/// turn it holds.
///
/// model      its tensors outlive the guard.
/// recorded   says which parameters are written; null while that is unknown: recordings put them
///            back by themselves.
/// Cost       a copy of the buffers, and of these parameters.
class StateGuard {
 public:
  explicit StateGuard(const Model& model, const graph::Graph* recorded = nullptr);
  ~StateGuard();
  StateGuard(const StateGuard&) = delete;
  StateGuard& operator=(const StateGuard&) = delete;

 private:
  struct GradientState {
    at::Tensor parameter;
    bool is_required = false;
    at::Tensor gradient;
  };

  GeneratorTurn turn_;  // first: held until the state is back
  TensorKeeper tensors_;
  std::vector<GradientState> parameters_;
  at::Generator generator_;
  at::Tensor generator_state_;
};

/// Takes a model into a mode. When the guard ends the model is in training mode, in which it is
/// except while something evaluates it: code in an opaque node asks the module for its mode.
class ModeGuard {
 public:
  /// model   outlives the guard.
  ModeGuard(const Model& model, graph::Mode mode);
  ~ModeGuard();
  ModeGuard(const ModeGuard&) = delete;
  ModeGuard& operator=(const ModeGuard&) = delete;

 private:
  const Model& model_;
};

}  // namespace trireme::record
