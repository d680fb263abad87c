#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "trireme/engine/parameters/parameter_store.h"
#include "trireme/plan.h"

namespace trireme::train {

/// What the loss is multiplied by in backwards, so that gradients in f16 do not become 0: halved where a step's numbers
/// are not finite, which updates nothing then; doubled after `growth_steps` steps that were. All powers of two, so a
/// scale changes bits only where numbers leave f16's range. The same on every rank, since the same is told to all.
///
/// Caller-synchronised.
class LossScale {
 public:
  /// Errors   kInvalidArgument, naming the option, where the scale is no power of two.
  explicit LossScale(const LossScaleOptions& options);

  bool is_on() const { return options_.initial > 0; }
  double value() const { return is_on() ? value_ : 1; }

  /// Takes the scale off gradients.
  void unscale(parameters::GradientBuffers& gradients) const;

  /// After a step: whether it is to be applied.
  ///
  /// problem   what is not finite; empty: nothing.
  /// Errors    kCorruptData where a step of scale 1 was not finite: scaling does not help.
  bool end_step(const std::string& problem, std::int64_t step);

  /// Scale and steps since it changed: [2] f64, for a checkpoint.
  at::Tensor state() const;
  void restore(const at::Tensor& state);

 private:
  LossScaleOptions options_;
  double value_;
  std::int64_t num_good_ = 0;
};

}  // namespace trireme::train
