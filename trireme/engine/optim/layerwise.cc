#include "trireme/kernels/optimizer/layerwise.h"

#include "trireme/engine/optim/optimizer.h"
#include "trireme/engine/optim/values.h"

namespace trireme::optim {
namespace {

class Lamb : public Optimizer {
 public:
  explicit Lamb(const kernels::LambOptions& options) : options_(options) {}

  void update(const FlatParameter& parameter, double learning_rate) override {
    const FloatValues values(parameter);
    kernels::LambOptions options = options_;
    options.learning_rate = learning_rate;
    if (is_vector(parameter)) options.weight_decay = 0;
    auto& state = state_of(parameter);
    auto* step = state.at("step").mutable_data_ptr<std::int64_t>();
    kernels::lamb(options, ++*step, values.gradient, state.at("exp_avg").mutable_data_ptr<float>(),
                  state.at("exp_avg_sq").mutable_data_ptr<float>(), values.value, values.count);
  }

 private:
  std::map<std::string, Kept> kinds(const FlatParameter& parameter) const override {
    const Kept kept = like(parameter.value);
    return {{"exp_avg", kept}, {"exp_avg_sq", kept}, {"step", kCount}};
  }

  kernels::LambOptions options_;
};

class Lars : public Optimizer {
 public:
  explicit Lars(const kernels::LarsOptions& options) : options_(options) {}

  void update(const FlatParameter& parameter, double learning_rate) override {
    const FloatValues values(parameter);
    kernels::LarsOptions options = options_;
    options.learning_rate = learning_rate;
    options.adapts = !is_vector(parameter);
    if (is_vector(parameter)) options.weight_decay = 0;
    auto& buffer = state_of(parameter).at("momentum_buffer");
    kernels::lars(options, values.gradient, buffer.mutable_data_ptr<float>(), values.value,
                  values.count);
  }

 private:
  std::map<std::string, Kept> kinds(const FlatParameter& parameter) const override {
    return {{"momentum_buffer", like(parameter.value)}};
  }

  kernels::LarsOptions options_;
};

class Novograd : public Optimizer {
 public:
  explicit Novograd(const kernels::NovogradOptions& options) : options_(options) {}

  void update(const FlatParameter& parameter, double learning_rate) override {
    const FloatValues values(parameter);
    kernels::NovogradOptions options = options_;
    options.learning_rate = learning_rate;
    if (is_vector(parameter)) options.weight_decay = 0;
    auto& state = state_of(parameter);
    auto* step = state.at("step").mutable_data_ptr<std::int64_t>();
    kernels::novograd(options, ++*step, values.gradient,
                      *state.at("square_norm").mutable_data_ptr<double>(),
                      state.at("exp_avg").mutable_data_ptr<float>(), values.value, values.count);
  }

 private:
  std::map<std::string, Kept> kinds(const FlatParameter& parameter) const override {
    return {{"exp_avg", like(parameter.value)}, {"square_norm", kNumber}, {"step", kCount}};
  }

  kernels::NovogradOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> make_lamb(const kernels::LambOptions& options) {
  return std::make_unique<Lamb>(options);
}

std::unique_ptr<Optimizer> make_lars(const kernels::LarsOptions& options) {
  return std::make_unique<Lars>(options);
}

std::unique_ptr<Optimizer> make_novograd(const kernels::NovogradOptions& options) {
  return std::make_unique<Novograd>(options);
}

}  // namespace trireme::optim
