#include "trireme/kernels/optimizer/lamb.h"

#include "trireme/engine/parameters/optimizers/flat_values.h"
#include "trireme/engine/parameters/optimizers/optimizer.h"

namespace trireme::parameters {
namespace {

class Lamb : public Optimizer {
 public:
  explicit Lamb(const kernels::LambOptions& options) : options_(options) {}

  void update(const FlatParameter& parameter, const UpdateRule& rule) override {
    const FloatValues values(parameter);
    const auto options = ruled(options_, rule, parameter);
    auto& state = state_of(parameter);
    auto* step = state.at("step").mutable_data_ptr<std::int64_t>();
    kernels::lamb(options, ++*step, values.gradient, state.at("exp_avg").mutable_data_ptr<float>(),
                  state.at("exp_avg_sq").mutable_data_ptr<float>(), values.value, values.count,
                  on_torch_threads);
  }

 private:
  std::map<std::string, Kept> kinds(const FlatParameter& parameter) const override {
    const Kept kept = like(parameter.value);
    return {{"exp_avg", kept}, {"exp_avg_sq", kept}, {"step", kCount}};
  }

  kernels::LambOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> make_lamb(const kernels::LambOptions& options) {
  return std::make_unique<Lamb>(options);
}

}  // namespace trireme::parameters
