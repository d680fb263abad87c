#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "trireme/base/random.h"
#include "trireme/engine/record/observer.h"
#include "trireme/model.h"
#include "trireme/plan/graph/graph.h"

namespace trireme::record {

/// Torch's default CPU generator belongs to the process: while one thread holds a turn, others that
/// draw under a turn wait. A thread may take several.
class GeneratorTurn {
 public:
  GeneratorTurn();
  ~GeneratorTurn();
  GeneratorTurn(const GeneratorTurn&) = delete;
  GeneratorTurn& operator=(const GeneratorTurn&) = delete;
};

/// Runs `work` with torch's default CPU generator at the start of the stream `seed`, in a turn
/// of its own.
void with_seeded_generator(std::uint64_t seed, const std::function<void()>& work);

/// Puts torch's default CPU generator at the start of the stream `seed`.
void seed_generator(std::uint64_t seed);

/// Makes an unmodified forward draw from the streams of the nodes that it would be recorded as:
/// what a replay of its graph is compared with.
///
///     Reseeder reseeder({seed, step, microbatch});
///     { const Observation observation(reseeder); losses = model.forward(batch); }
class Reseeder : public OperatorListener {
 public:
  explicit Reseeder(NodeStream stream) : stream_(stream) {}
  void before(int index, const at::RecordFunction& call) override;
  void after(int, const at::RecordFunction&) override {}
  void before_opaque(int index, const OpaqueCall& call) override;
  void after_opaque(int, const OpaqueCall&) override {}

 private:
  NodeStream stream_;
};

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
