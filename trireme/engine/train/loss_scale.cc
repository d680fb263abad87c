#include "trireme/engine/train/loss_scale.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "trireme/engine/train/finite_check.h"
#include "trireme/error.h"

namespace trireme::train {
namespace {

constexpr double kLargest = 0x1p24;  // Of f32's exponents, for sums of many gradients.

bool is_power_of_two(double value) {
  int exponent = 0;
  return value >= 1 && value <= kLargest && std::frexp(value, &exponent) == 0.5;
}

}  // namespace

LossScale::LossScale(const LossScaleOptions& options) : options_(options), value_(options.initial) {
  if (!is_on()) return;
  if (!is_power_of_two(options.initial) || options.growth_steps < 1) {
    throw Error(ErrorKind::kInvalidArgument,
                "the loss scale must be a power of two from 1 to 2^24, or 0 for none, and grow "
                "after 1 or more steps; got " +
                    std::to_string(options.initial) + " and " +
                    std::to_string(options.growth_steps));
  }
}

void LossScale::unscale(parameters::GradientBuffers& gradients) const {
  if (!is_on() || value_ == 1) return;
  const at::NoGradGuard no_grad;
  for (const at::Tensor& flat : gradients.all()) {
    if (flat.defined()) flat.mul_(1 / value_);
  }
}

bool LossScale::end_step(const std::string& problem, std::int64_t step) {
  if (problem.empty()) {
    if (++num_good_ < options_.growth_steps) return true;
    num_good_ = 0;
    value_ = std::min(2 * value_, kLargest);
    return true;
  }
  if (value_ == 1) require_finite(problem, step);
  value_ /= 2;
  num_good_ = 0;
  return false;
}

at::Tensor LossScale::state() const {
  const at::Tensor state = at::empty({2}, at::kDouble);
  state.mutable_data_ptr<double>()[0] = value_;
  state.mutable_data_ptr<double>()[1] = static_cast<double>(num_good_);
  return state;
}

void LossScale::restore(const at::Tensor& state) {
  value_ = state.const_data_ptr<double>()[0];
  num_good_ = static_cast<std::int64_t>(state.const_data_ptr<double>()[1]);
}

}  // namespace trireme::train
