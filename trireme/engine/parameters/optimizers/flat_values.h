#pragma once

#include <cstdint>

#include "trireme/engine/memory/torch_threads.h"
#include "trireme/engine/parameters/optimizers/optimizer.h"

namespace trireme::parameters {

using memory::on_torch_threads;  // what kernels are spread by

/// Calls `work(gradient, value)` with the arrays of a parameter in their type, f32 or f64.
template <typename Work>
void with_values(const FlatParameter& parameter, Work&& work) {
  if (parameter.value.scalar_type() == at::kDouble) {
    work(parameter.gradient.const_data_ptr<double>(), parameter.value.mutable_data_ptr<double>());
  } else {
    work(parameter.gradient.const_data_ptr<float>(), parameter.value.mutable_data_ptr<float>());
  }
}

/// A bias or the scale of a norm, which optimizers of large batches treat apart; or a scalar.
inline bool is_vector(const FlatParameter& parameter) { return parameter.shape.size() < 2; }

/// The arrays of a parameter for optimizers that know f32 alone.
struct FloatValues {
  const float* gradient;
  float* value;
  std::int64_t count;

  explicit FloatValues(const FlatParameter& parameter)
      : gradient(parameter.gradient.const_data_ptr<float>()),
        value(parameter.value.mutable_data_ptr<float>()),
        count(parameter.value.numel()) {}
};

/// A kernel's options with the rate and the decay of this step.
template <typename Options>
Options ruled(Options options, const UpdateRule& rule) {
  options.learning_rate = rule.learning_rate;
  if (rule.weight_decay) options.weight_decay = *rule.weight_decay;
  return options;
}

/// The same where vectors have no decay but by the rule.
template <typename Options>
Options ruled(Options options, const UpdateRule& rule, const FlatParameter& parameter) {
  if (is_vector(parameter)) options.weight_decay = 0;
  return ruled(options, rule);
}

}  // namespace trireme::parameters
