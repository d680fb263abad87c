#include "trireme/kernels/optimizer/lamb.h"

#include "trireme/engine/parameters/optimizers/flat_values.h"
#include "trireme/engine/parameters/optimizers/optimizer.h"

namespace trireme::parameters {
namespace {

class Lamb : public Optimizer {
 public:
  explicit Lamb(const kernels::LambOptions& options) : options_(options) {}

  int sums_per_block() const override { return 2; }

  void begin_update(const FlatParameter& parameter, const UpdateRule& rule,
                    std::span<double> sums) override {
    const FloatValues values(parameter);
    const Moments moments(state_of(parameter));
    std::vector<kernels::LambSums> blocks(sums.size() / 2);
    kernels::lamb_moments(ruled(options_, rule, parameter), ++moments.step, values.gradient,
                          moments.first, moments.second, values.value, values.count, blocks,
                          on_torch_threads);
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      sums[2 * b] = blocks[b].parameter;
      sums[2 * b + 1] = blocks[b].update;
    }
  }

  void update(const FlatParameter& parameter, const UpdateRule& rule,
              std::span<const double> sums) override {
    const FloatValues values(parameter);
    const Moments moments(state_of(parameter));
    kernels::lamb_update(ruled(options_, rule, parameter), moments.step, {sums[0], sums[1]},
                         moments.first, moments.second, values.value, values.count,
                         on_torch_threads);
  }

  std::map<std::string, Kept> own_kinds(const FlatParameter& parameter) const override {
    const Kept kept = like(parameter.value);
    return {{"exp_avg", kept}, {"exp_avg_sq", kept}, {"step", count()}};
  }

 private:
  struct Moments {
    explicit Moments(std::map<std::string, at::Tensor>& state)
        : step(*state.at("step").mutable_data_ptr<std::int64_t>()),
          first(state.at("exp_avg").mutable_data_ptr<float>()),
          second(state.at("exp_avg_sq").mutable_data_ptr<float>()) {}
    std::int64_t& step;
    float* first;
    float* second;
  };

  kernels::LambOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> make_lamb(const kernels::LambOptions& options) {
  return std::make_unique<Lamb>(options);
}

}  // namespace trireme::parameters
