#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <vector>

#include "benchmarks/kernels/case.h"
#include "benchmarks/kernels/random_values.h"
#include "trireme/kernels/half.h"
#include "trireme/kernels/spread.h"

namespace trireme::kernels::bench {

/// A parameter: a matrix, or a vector as a single row.
struct ParameterShape {
  std::int64_t rows, columns;
};

/// What a step of a tensor is given: arrays of its elements, its index and the step from 1 on.
template <typename State>
struct OptimizerStep {
  const float* gradient;
  State *m, *v;
  float* parameter;
  std::int64_t rows, size;
  std::size_t index;
  std::int64_t step;
  const Spread& spread;
};

/// Differences that are right: of the change of a parameter, of the sum of a first moment's
/// magnitudes. Changes with bf16 moments are off by their rounding; the sum is not, but where they
/// are rounded to one side.
inline constexpr double kChangeTolerance = 1e-3;
inline constexpr double kRoundedChangeTolerance = 3e-2;
inline constexpr double kMomentTolerance = 2e-4;

enum class HasMoment : std::uint8_t { kNo, kYes };

/// An optimizer's steps over some tensors. What is compared is made by three steps with gradients
/// that differ, so that momentum counts; peers do the same (optimizer_peers.py).
template <typename State>
class OptimizerCase final : public Case {
 public:
  using Update = std::function<void(const OptimizerStep<State>&)>;

  OptimizerCase(const std::vector<ParameterShape>& shapes, const CaseSetting& setting,
                Update update, HasMoment has_moment)
      : update_(std::move(update)),
        spread_(on_threads(setting.num_threads)),
        has_moment_(has_moment) {
    const auto rows = inputs_.add<std::int64_t>("rows", {std::ssize(shapes)});
    const auto sizes = inputs_.add<std::int64_t>("sizes", {std::ssize(shapes)});
    std::ranges::transform(shapes, rows.begin(), &ParameterShape::rows);
    std::ranges::transform(shapes, sizes.begin(),
                           [](ParameterShape s) { return s.rows * s.columns; });
    const std::int64_t n = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
    fill_normal(inputs_.add<float>("parameter", {n}), 1, 0.05F);
    fill_normal(inputs_.add<float>("gradient", {n}), 2, 0.01F);
    parameter_ = values("parameter");
    gradient_ = values("gradient");
    m_.resize(n);
    v_.resize(n);
  }

  const Tensors& inputs() const override { return inputs_; }

  void run() override {
    const auto rows = inputs_.get<std::int64_t>("rows"), sizes = inputs_.get<std::int64_t>("sizes");
    std::int64_t begin = 0;
    ++step_;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      update_({gradient_.data() + begin, m_.data() + begin, v_.data() + begin,
               parameter_.data() + begin, rows[i], sizes[i], i, step_, spread_});
      begin += sizes[i];
    }
  }

  void check() override {
    for (const float scale : {1.0F, -0.5F, 4.0F}) {  // powers of 2, so that the last is undone
      for (float& g : gradient_) g *= scale;
      run();
    }
    gradient_ = values("gradient");
    const auto change = checked_.add<float>("change", {std::ssize(parameter_)});
    std::ranges::transform(parameter_, values("parameter"), change.begin(), std::minus());
    if (has_moment_ == HasMoment::kNo) return;
    double sum = 0;
    for (const State m : m_) sum += std::abs(static_cast<double>(to_f32(m)));
    checked_.add<double>("moment", {1})[0] = sum;
  }

  Tensors outputs() const override { return checked_; }

 private:
  std::vector<float> values(const char* name) const {
    const auto all = inputs_.get<float>(name);
    return {all.begin(), all.end()};
  }

  Tensors inputs_, checked_;
  const Update update_;
  const Spread spread_;
  const HasMoment has_moment_;
  std::vector<float> parameter_, gradient_;
  std::vector<State> m_, v_;
  std::int64_t step_ = 0;
};

template <typename State, typename Update>
std::unique_ptr<Case> make_optimizer_case(const std::vector<ParameterShape>& shapes,
                                          const CaseSetting& setting, const Update& update,
                                          HasMoment has_moment = HasMoment::kYes) {
  return std::make_unique<OptimizerCase<State>>(shapes, setting, update, has_moment);
}

}  // namespace trireme::kernels::bench
