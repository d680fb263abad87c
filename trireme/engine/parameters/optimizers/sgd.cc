#include "trireme/engine/parameters/optimizers/flat_values.h"
#include "trireme/engine/parameters/optimizers/optimizer.h"

namespace trireme::parameters {
namespace {

class Sgd : public Optimizer {
 public:
  explicit Sgd(const kernels::SgdOptions& options) : options_(options) {}

  bool takes_f64() const override { return true; }

  void update(const FlatParameter& parameter, const UpdateRule& rule,
              std::span<const double>) override {
    const auto options = ruled(options_, rule);
    const bool first = options_.momentum != 0 && !state().contains(parameter.name);
    at::Tensor buffer;
    if (averages() || options_.momentum != 0) state_of(parameter);
    if (options_.momentum != 0) buffer = state_of(parameter).at("momentum_buffer");
    with_values(parameter, [&]<typename T>(const T* gradient, T* value) {
      T* momentum = buffer.defined() ? buffer.mutable_data_ptr<T>() : nullptr;
      kernels::sgd(options, first, gradient, momentum, value, parameter.value.numel(),
                   on_torch_threads);
    });
  }

  std::map<std::string, Kept> own_kinds(const FlatParameter& parameter) const override {
    if (options_.momentum == 0) return {};
    return {{"momentum_buffer", like(parameter.value)}};
  }

 private:
  kernels::SgdOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(const kernels::SgdOptions& options) {
  return std::make_unique<Sgd>(options);
}

}  // namespace trireme::parameters
