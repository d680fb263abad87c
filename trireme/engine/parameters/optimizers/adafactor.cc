#include "trireme/kernels/optimizer/adafactor.h"

#include <algorithm>

#include "trireme/engine/parameters/optimizers/flat_values.h"
#include "trireme/engine/parameters/optimizers/optimizer.h"

namespace trireme::parameters {
namespace {

kernels::AdafactorShape matrices_of(const FlatParameter& parameter) {
  const std::int64_t rows = parameter.shape.front();
  return {1, rows, parameter.value.numel() / std::max<std::int64_t>(rows, 1)};
}

class Adafactor : public Optimizer {
 public:
  explicit Adafactor(const kernels::AdafactorOptions& options) : options_(options) {}

  bool can_shard() const override { return false; }

  void update(const FlatParameter& parameter, const UpdateRule& rule,
              std::span<const double>) override {
    const FloatValues values(parameter);
    const auto options = ruled(options_, rule);
    auto& state = state_of(parameter);
    const std::int64_t step = ++*state.at("step").mutable_data_ptr<std::int64_t>();
    const auto kept = [&](const char* kind) { return state.at(kind).mutable_data_ptr<float>(); };
    float* momentum = options.beta1 == 0 ? nullptr : kept("exp_avg");
    if (is_vector(parameter)) {
      kernels::adafactor(options, step, values.gradient, kept("exp_avg_sq"), momentum, values.value,
                         values.count);
    } else {
      kernels::adafactor(options, step, matrices_of(parameter), values.gradient,
                         kept("exp_avg_sq_row"), kept("exp_avg_sq_column"), momentum, values.value);
    }
  }

  std::map<std::string, Kept> own_kinds(const FlatParameter& parameter) const override {
    std::map<std::string, Kept> all = {{"step", count()}};
    if (options_.beta1 != 0) all["exp_avg"] = like(parameter.value);
    if (is_vector(parameter)) {
      all["exp_avg_sq"] = like(parameter.value);
    } else {
      const auto [num_matrices, rows, columns] = matrices_of(parameter);
      all["exp_avg_sq_row"] = {num_matrices * rows, at::kFloat, false};
      all["exp_avg_sq_column"] = {num_matrices * columns, at::kFloat, false};
    }
    return all;
  }

 private:
  kernels::AdafactorOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adafactor(const kernels::AdafactorOptions& options) {
  return std::make_unique<Adafactor>(options);
}

}  // namespace trireme::parameters
