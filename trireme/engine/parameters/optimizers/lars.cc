#include "trireme/kernels/optimizer/lars.h"

#include "trireme/engine/parameters/optimizers/flat_values.h"
#include "trireme/engine/parameters/optimizers/optimizer.h"

namespace trireme::parameters {
namespace {

class Lars : public Optimizer {
 public:
  explicit Lars(const kernels::LarsOptions& options) : options_(options) {}

  void update(const FlatParameter& parameter, const UpdateRule& rule) override {
    const FloatValues values(parameter);
    auto options = ruled(options_, rule, parameter);
    options.adapts = !is_vector(parameter);
    auto& buffer = state_of(parameter).at("momentum_buffer");
    kernels::lars(options, values.gradient, buffer.mutable_data_ptr<float>(), values.value,
                  values.count, on_torch_threads);
  }

 private:
  std::map<std::string, Kept> kinds(const FlatParameter& parameter) const override {
    return {{"momentum_buffer", like(parameter.value)}};
  }

  kernels::LarsOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> make_lars(const kernels::LarsOptions& options) {
  return std::make_unique<Lars>(options);
}

}  // namespace trireme::parameters
