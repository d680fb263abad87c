#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "trireme/engine/record/generator.h"
#include "trireme/engine/record/model.h"
#include "trireme/plan/graph/graph.h"

namespace trireme::record {

/// What a forward may change, put back when the guard ends: the buffers of a model, what its
/// parameters say of gradients, their `.grad`, and the default generator, whose turn it holds.
///
/// model   its tensors outlive the guard.
/// Cost    a copy of the buffers.
class StateGuard {
 public:
  explicit StateGuard(const Model& model);
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
  std::vector<std::pair<at::Tensor, at::Tensor>> buffers_;
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
