#include "trireme/engine/parameters/optimizers/flat_values.h"
#include "trireme/engine/parameters/optimizers/optimizer.h"

namespace trireme::parameters {
namespace {

class Adamw : public Optimizer {
 public:
  explicit Adamw(const kernels::AdamwOptions& options) : options_(options) {}

  bool takes_f64() const override { return true; }

  void update(const FlatParameter& parameter, const UpdateRule& rule,
              std::span<const double>) override {
    const auto options = ruled(options_, rule);
    auto& state = state_of(parameter);
    auto* step = state["step"].mutable_data_ptr<std::int64_t>();
    ++*step;
    with_values(parameter, [&]<typename T>(const T* gradient, T* value) {
      kernels::adamw(options, *step, gradient, state["exp_avg"].mutable_data_ptr<T>(),
                     state["exp_avg_sq"].mutable_data_ptr<T>(), value, parameter.value.numel(),
                     nullptr, on_torch_threads);
    });
  }

  std::map<std::string, Kept> own_kinds(const FlatParameter& parameter) const override {
    const Kept kept = like(parameter.value);
    return {{"exp_avg", kept}, {"exp_avg_sq", kept}, {"step", count()}};
  }

 private:
  kernels::AdamwOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adamw(const kernels::AdamwOptions& options) {
  return std::make_unique<Adamw>(options);
}

}  // namespace trireme::parameters
