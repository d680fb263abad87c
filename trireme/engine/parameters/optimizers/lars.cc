#include "trireme/kernels/optimizer/lars.h"

#include "trireme/engine/parameters/optimizers/flat_values.h"
#include "trireme/engine/parameters/optimizers/optimizer.h"
#include "trireme/kernels/norm/norm.h"

namespace trireme::parameters {
namespace {

class Lars : public Optimizer {
 public:
  explicit Lars(const kernels::LarsOptions& options) : options_(options) {}

  int sums_per_block() const override { return 2; }

  /// Squares of the value and of the gradient.
  void begin_update(const FlatParameter& parameter, const UpdateRule&,
                    std::span<double> sums) override {
    if (is_vector(parameter)) return;
    const FloatValues values(parameter);
    std::vector<double> weights(sums.size() / 2), slopes(sums.size() / 2);
    kernels::block_sums_of_squares(values.value, values.count, weights.data(), on_torch_threads);
    kernels::block_sums_of_squares(values.gradient, values.count, slopes.data(), on_torch_threads);
    for (std::size_t b = 0; b < weights.size(); ++b) {
      sums[2 * b] = weights[b];
      sums[2 * b + 1] = slopes[b];
    }
  }

  void update(const FlatParameter& parameter, const UpdateRule& rule,
              std::span<const double> sums) override {
    const FloatValues values(parameter);
    auto options = ruled(options_, rule, parameter);
    options.adapts = !is_vector(parameter);
    auto& buffer = state_of(parameter).at("momentum_buffer");
    kernels::lars(options, sums[0], sums[1], values.gradient, buffer.mutable_data_ptr<float>(),
                  values.value, values.count, on_torch_threads);
  }

  std::map<std::string, Kept> own_kinds(const FlatParameter& parameter) const override {
    return {{"momentum_buffer", like(parameter.value)}};
  }

 private:
  kernels::LarsOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> make_lars(const kernels::LarsOptions& options) {
  return std::make_unique<Lars>(options);
}

}  // namespace trireme::parameters
