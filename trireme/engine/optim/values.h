#pragma once

#include <string>

#include "trireme/base/error.h"
#include "trireme/engine/optim/optimizer.h"

namespace trireme::optim {

/// Calls `work(gradient, value)` with the arrays of a parameter in their type.
template <typename Work>
void with_values(const FlatParameter& parameter, Work&& work) {
  const at::ScalarType type = parameter.value.scalar_type();
  if (type == at::kFloat) {
    work(parameter.gradient.const_data_ptr<float>(), parameter.value.mutable_data_ptr<float>());
  } else if (type == at::kDouble) {
    work(parameter.gradient.const_data_ptr<double>(), parameter.value.mutable_data_ptr<double>());
  } else {
    throw Error(ErrorKind::kInvalidArgument,
                "parameter '" + parameter.name + "' has dtype " + c10::toString(type) +
                    "; keep parameters in f32 and compute in bf16 by autocast");
  }
}

/// A bias or the scale of a norm, which optimizers of large batches treat apart; or a scalar.
inline bool is_vector(const FlatParameter& parameter) { return parameter.shape.size() < 2; }

/// The arrays of a parameter for optimizers that know f32 alone.
struct FloatValues {
  const float* gradient;
  float* value;
  std::int64_t count;

  FloatValues(const FlatParameter& parameter, const std::string& optimizer) {
    const at::ScalarType type = parameter.value.scalar_type();
    if (type != at::kFloat) {
      throw Error(ErrorKind::kInvalidArgument,
                  optimizer + " updates f32, parameter '" + parameter.name + "' has dtype " +
                      c10::toString(type) + "; take adamw or sgd for it");
    }
    gradient = parameter.gradient.const_data_ptr<float>();
    value = parameter.value.mutable_data_ptr<float>();
    count = parameter.value.numel();
  }
};

}  // namespace trireme::optim
