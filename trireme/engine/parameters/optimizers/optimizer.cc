#include "trireme/engine/parameters/optimizers/optimizer.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "trireme/engine/parameters/optimizers/flat_values.h"
#include "trireme/error.h"
#include "trireme/kernels/norm/norm.h"

namespace trireme::parameters {
namespace {

at::Tensor flat_part(const at::Tensor& flat, const layout::Slot& slot) {
  return flat.narrow(0, slot.offset_elements, slot.num_elements);
}

at::Tensor gradient_of(const ParameterStore& store, const GradientBuffers& gradients,
                       const std::string& name) {
  const SlotPlace place = store.owner(name);
  return flat_part(gradients.flat(place.bucket), store.slot(place));
}

/// Sizes from the outermost dimension of the memory to the innermost.
std::vector<std::int64_t> memory_shape(const at::Tensor& value) {
  std::vector<std::int64_t> dims(value.dim()), shape;
  std::iota(dims.begin(), dims.end(), 0);
  std::ranges::stable_sort(dims, std::greater{}, [&](std::int64_t d) { return value.stride(d); });
  for (const std::int64_t d : dims) shape.push_back(value.size(d));
  return shape;
}

double square_norm(const at::Tensor& flat) {
  return flat.scalar_type() == at::kDouble
             ? kernels::square_norm(flat.const_data_ptr<double>(), flat.numel(), on_torch_threads)
             : kernels::square_norm(flat.const_data_ptr<float>(), flat.numel(), on_torch_threads);
}

}  // namespace

std::map<std::string, at::Tensor>& Optimizer::state_of(const FlatParameter& parameter) {
  auto& state = state_[parameter.name];
  if (!state.empty()) return state;
  for (const auto& [kind, kept] : kinds(parameter)) {
    state[kind] = at::zeros({kept.num_elements}, kept.dtype);
  }
  return state;
}

void Optimizer::restore(const FlatParameter& parameter, std::map<std::string, at::Tensor> state) {
  const auto expected = kinds(parameter);
  bool fits = state.size() == expected.size();
  for (const auto& [kind, kept] : expected) {
    const auto found = state.find(kind);
    fits = fits && found != state.end() && found->second.numel() == kept.num_elements &&
           found->second.scalar_type() == kept.dtype;
  }
  if (!fits) {
    throw Error(ErrorKind::kCorruptData,
                "the checkpoint's optimizer state of '" + parameter.name +
                    "' is not what this optimizer keeps; resume from another checkpoint");
  }
  state_[parameter.name] = std::move(state);
}

void check_parameters(const Optimizer& optimizer, const ParameterStore& store) {
  for (const std::string& name : store.names()) {
    if (store.value(name).scalar_type() != at::kDouble || optimizer.takes_f64()) continue;
    throw Error(ErrorKind::kInvalidArgument, "this optimizer updates f32, parameter '" + name +
                                                 "' is f64; take adamw or sgd for it");
  }
}

FlatParameter flat_parameter(const ParameterStore& store, const std::string& name) {
  const SlotPlace place = store.owner(name);
  return {name,
          flat_part(store.flat_values(place.bucket), store.slot(place)),
          {},
          memory_shape(store.value(name))};
}

SquareNorms square_norms(const ParameterStore& store, const GradientBuffers& gradients,
                         const HasGradient& has_gradient) {
  SquareNorms result;
  for (const std::string& name : store.names()) {
    if (has_gradient(name)) result[name] = square_norm(gradient_of(store, gradients, name));
  }
  return result;
}

double global_norm(const SquareNorms& square_norms) {
  double sum = 0;
  for (const auto& [name, square] : square_norms) sum += square;
  return std::sqrt(sum);
}

void clip(GradientBuffers& gradients, double norm, double max_norm) {
  if (!(max_norm > 0)) {
    throw Error(ErrorKind::kInvalidArgument,
                "gradients are clipped to a positive norm, got " + std::to_string(max_norm));
  }
  const at::NoGradGuard no_grad;
  const double factor = max_norm / (norm + 1e-6);
  if (factor >= 1) return;
  for (at::Tensor& flat : gradients.all()) {
    if (flat.defined()) flat.mul_(factor);
  }
}

namespace {

class Own : public Optimizer {
 public:
  bool takes_f64() const override { return true; }
  void update(const FlatParameter&, const UpdateRule&) override {}

 private:
  std::map<std::string, Kept> kinds(const FlatParameter&) const override { return {}; }
};

}  // namespace

std::unique_ptr<Optimizer> make_own() { return std::make_unique<Own>(); }

void apply(Optimizer& optimizer, const ParameterStore& store, const GradientBuffers& gradients,
           const HasGradient& has_gradient, const RuleOf& rule_of) {
  const at::NoGradGuard no_grad;
  for (const std::string& name : store.names()) {
    if (!has_gradient(name)) continue;
    FlatParameter parameter = flat_parameter(store, name);
    parameter.gradient = gradient_of(store, gradients, name);
    optimizer.update(parameter, rule_of(name));
  }
}

}  // namespace trireme::parameters
