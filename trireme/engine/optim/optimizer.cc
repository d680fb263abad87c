#include "trireme/engine/optim/optimizer.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <cmath>

#include "trireme/base/error.h"
#include "trireme/kernels/norm/norm.h"

namespace trireme::optim {
namespace {

using parameters::GradientBuffers;
using parameters::ParameterStore;

at::Tensor flat_part(const at::Tensor& flat, const parameters::Slot& slot) {
  return flat.narrow(0, slot.offset_elements, slot.num_elements);
}

at::Tensor gradient_of(const ParameterStore& store, const GradientBuffers& gradients,
                       const std::string& name) {
  const parameters::SlotPlace place = store.owner(name);
  return flat_part(gradients.flat(place.bucket), store.slot(place));
}

double square_norm(const at::Tensor& flat) {
  return flat.scalar_type() == at::kDouble
             ? kernels::square_norm(flat.const_data_ptr<double>(), flat.numel())
             : kernels::square_norm(flat.const_data_ptr<float>(), flat.numel());
}

}  // namespace

double global_norm(const ParameterStore& store, const GradientBuffers& gradients,
                   const HasGradient& has_gradient) {
  double sum = 0;
  for (const std::string& name : store.names()) {
    if (has_gradient(name)) sum += square_norm(gradient_of(store, gradients, name));
  }
  return std::sqrt(sum);
}

double clip_global_norm(const ParameterStore& store, GradientBuffers& gradients,
                        const HasGradient& has_gradient, double max_norm) {
  if (!(max_norm > 0)) {
    throw Error(ErrorKind::kInvalidArgument,
                "gradients are clipped to a positive norm, got " + std::to_string(max_norm));
  }
  const at::NoGradGuard no_grad;
  const double norm = global_norm(store, gradients, has_gradient);
  const double factor = max_norm / (norm + 1e-6);
  if (factor < 1) {
    for (at::Tensor& flat : gradients.all()) flat.mul_(factor);
  }
  return norm;
}

void apply(Optimizer& optimizer, const ParameterStore& store, const GradientBuffers& gradients,
           const HasGradient& has_gradient, double learning_rate) {
  const at::NoGradGuard no_grad;
  for (const std::string& name : store.names()) {
    if (!has_gradient(name)) continue;
    const parameters::SlotPlace place = store.owner(name);
    optimizer.update({name, flat_part(store.flat_values(place.bucket), store.slot(place)),
                      gradient_of(store, gradients, name)},
                     learning_rate);
  }
}

}  // namespace trireme::optim
