#include "trireme/kernels/optimizer/novograd.h"

#include "trireme/engine/parameters/optimizers/flat_values.h"
#include "trireme/engine/parameters/optimizers/optimizer.h"
#include "trireme/kernels/norm/norm.h"

namespace trireme::parameters {
namespace {

class Novograd : public Optimizer {
 public:
  explicit Novograd(const kernels::NovogradOptions& options) : options_(options) {}

  int sums_per_block() const override { return 1; }

  /// Squares of the gradient.
  void begin_update(const FlatParameter& parameter, const UpdateRule&,
                    std::span<double> sums) override {
    const FloatValues values(parameter);
    kernels::block_sums_of_squares(values.gradient, values.count, sums.data(), on_torch_threads);
  }

  void update(const FlatParameter& parameter, const UpdateRule& rule,
              std::span<const double> sums) override {
    const FloatValues values(parameter);
    const auto options = ruled(options_, rule, parameter);
    auto& state = state_of(parameter);
    auto* step = state.at("step").mutable_data_ptr<std::int64_t>();
    kernels::novograd(options, ++*step, sums[0], values.gradient,
                      *state.at("square_norm").mutable_data_ptr<double>(),
                      state.at("exp_avg").mutable_data_ptr<float>(), values.value, values.count,
                      on_torch_threads);
  }

  std::map<std::string, Kept> own_kinds(const FlatParameter& parameter) const override {
    return {{"exp_avg", like(parameter.value)}, {"square_norm", number()}, {"step", count()}};
  }

 private:
  kernels::NovogradOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> make_novograd(const kernels::NovogradOptions& options) {
  return std::make_unique<Novograd>(options);
}

}  // namespace trireme::parameters
