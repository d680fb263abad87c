#include "trireme/kernels/optimizer/novograd.h"

#include "trireme/engine/parameters/optimizers/flat_values.h"
#include "trireme/engine/parameters/optimizers/optimizer.h"

namespace trireme::parameters {
namespace {

class Novograd : public Optimizer {
 public:
  explicit Novograd(const kernels::NovogradOptions& options) : options_(options) {}

  void update(const FlatParameter& parameter, const UpdateRule& rule) override {
    const FloatValues values(parameter);
    const auto options = ruled(options_, rule, parameter);
    auto& state = state_of(parameter);
    auto* step = state.at("step").mutable_data_ptr<std::int64_t>();
    kernels::novograd(options, ++*step, values.gradient,
                      *state.at("square_norm").mutable_data_ptr<double>(),
                      state.at("exp_avg").mutable_data_ptr<float>(), values.value, values.count,
                      on_torch_threads);
  }

 private:
  std::map<std::string, Kept> kinds(const FlatParameter& parameter) const override {
    return {{"exp_avg", like(parameter.value)}, {"square_norm", kNumber}, {"step", kCount}};
  }

  kernels::NovogradOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> make_novograd(const kernels::NovogradOptions& options) {
  return std::make_unique<Novograd>(options);
}

}  // namespace trireme::parameters
