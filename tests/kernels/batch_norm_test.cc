#include "trireme/kernels/normalization/batch_norm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <cmath>
#include <thread>
#include <type_traits>
#include <vector>

#include "tests/kernels/random_numbers.h"
#include "tests/kernels/reference/batch_norm.h"
#include "trireme/error.h"
#include "trireme/kernels/isa.h"

namespace trireme::kernels {
namespace {

using Floats = std::vector<float>;

struct NormProblem {
  BatchNormShape shape;
  BatchNormOptions options;
  bool has_residual = false;
  Floats x, residual, gamma, beta, gradient_y;
};

NormProblem make_norm_problem(const BatchNormShape& shape, bool has_relu, bool has_residual) {
  const std::int64_t n = shape.count();
  NormProblem made{.shape = shape, .options = {.has_relu = has_relu}, .has_residual = has_residual};
  made.x = random_numbers<float>(n, 1, 0);
  for (float& x : made.x) x = x * 3 + 10;  // a mean that is large beside the deviation
  if (has_residual) made.residual = random_numbers<float>(n, 2, 0);
  made.gamma = random_numbers<float>(shape.channels, 3, 0);
  made.beta = random_numbers<float>(shape.channels, 4, 0);
  made.gradient_y = random_numbers<float>(n, 5, 0);
  return made;
}

struct NormResult {
  explicit NormResult(const BatchNormShape& shape)
      : y(shape.count()),
        variance(shape.channels),
        mean(shape.channels),
        inverse(shape.channels),
        gradient_x(shape.count()),
        gradient_residual(shape.count()),
        gradient_gamma(shape.channels),
        gradient_beta(shape.channels),
        mask(mask_words(shape)) {}

  bool operator==(const NormResult&) const = default;

  Floats y, variance, mean, inverse, gradient_x, gradient_residual, gradient_gamma, gradient_beta;
  std::vector<std::uint16_t> mask;
  double count = 0;
};

/// f32 as a kernel's type has it, and back.
template <typename T>
std::vector<T> rounded_to(const Floats& values) {
  std::vector<T> rounded;
  for (const float value : values) {
    if constexpr (std::is_same_v<T, Bf16>) {
      rounded.push_back(to_bf16(value));
    } else {
      rounded.push_back(value);
    }
  }
  return rounded;
}

template <typename T>
Floats in_f32(const std::vector<T>& values) {
  Floats wide;
  for (const T value : values) wide.push_back(to_f32(value));
  return wide;
}

/// Of the problem's elements as T.
template <typename T>
NormResult run_as(const NormProblem& problem, StatisticsGroup* group, const Spread& spread) {
  NormResult result(problem.shape);
  std::uint16_t* mask = problem.options.has_relu ? result.mask.data() : nullptr;
  const BatchNormStatistics statistics{result.mean.data(), result.inverse.data(), &result.count};
  const auto x = rounded_to<T>(problem.x), residual = rounded_to<T>(problem.residual);
  const auto gradient_y = rounded_to<T>(problem.gradient_y);
  std::vector<T> y(x.size()), gradient_x(x.size()), gradient_residual(x.size());
  batch_norm_forward(
      problem.options, problem.shape,
      BatchNormForwardOf<T>{.x = x.data(),
                            .residual = problem.has_residual ? residual.data() : nullptr,
                            .gamma = problem.gamma.data(),
                            .beta = problem.beta.data(),
                            .y = y.data(),
                            .mask = mask,
                            .variance = result.variance.data(),
                            .statistics = statistics},
      group, spread);
  batch_norm_backward(
      problem.shape,
      BatchNormBackwardOf<T>{
          .gradient_y = gradient_y.data(),
          .x = x.data(),
          .gamma = problem.gamma.data(),
          .mask = mask,
          .statistics = statistics,
          .gradient_x = gradient_x.data(),
          .gradient_residual = problem.has_residual ? gradient_residual.data() : nullptr,
          .gradient_gamma = result.gradient_gamma.data(),
          .gradient_beta = result.gradient_beta.data()},
      group, spread);
  result.y = in_f32(y);
  result.gradient_x = in_f32(gradient_x);
  result.gradient_residual = in_f32(gradient_residual);
  return result;
}

NormResult run(const NormProblem& problem, StatisticsGroup* group = nullptr,
               const Spread& spread = on_caller) {
  return run_as<float>(problem, group, spread);
}

void expect_near(const Floats& ours, const std::vector<double>& expected, const char* what) {
  for (std::size_t i = 0; i < ours.size(); ++i) {
    ASSERT_EQ(std::isnan(ours[i]), std::isnan(expected[i])) << what << i;
    if (std::isnan(expected[i])) continue;
    ASSERT_NEAR(ours[i], expected[i], 2e-5 * std::max(1.0, std::abs(expected[i]))) << what << i;
  }
}

reference::BatchNorm<double> reference_of(const NormProblem& p) {
  return {p.options,        p.shape,         widened(p.x),         widened(p.residual),
          widened(p.gamma), widened(p.beta), widened(p.gradient_y)};
}

std::vector<BatchNormShape> shapes() {
  return {{2, 3, 35, false},   {2, 35, 3, true},   {1, 1, 2, false},    {4, 16, 16, false},
          {3, 5, 2049, false}, {2, 17, 700, true}, {1, 64, 1025, true}, {2, 1, 1, true}};
}

TEST(BatchNormTest, IsTheReference) {
  for (const BatchNormShape& shape : shapes()) {
    for (const bool has_relu : {false, true}) {
      for (const bool has_residual : {false, true}) {
        const NormProblem problem = make_norm_problem(shape, has_relu, has_residual);
        const NormResult result = run(problem);
        const auto expected = reference_of(problem);
        expect_near(result.y, expected.y, "y");
        expect_near(result.mean, expected.mean, "mean");
        expect_near(result.gradient_x, expected.gradient_x, "gradient_x");
        expect_near(result.gradient_gamma, expected.gradient_gamma, "gradient_gamma");
        expect_near(result.gradient_beta, expected.gradient_beta, "gradient_beta");
        if (has_residual) {
          expect_near(result.gradient_residual, expected.gradient_residual, "gradient_residual");
        }
      }
    }
  }
}

TEST(BatchNormTest, HasTheSameBitsOnEveryInstructionSetAndAnyThreads) {
  for (const BatchNormShape& shape : shapes()) {
    const NormProblem problem = make_norm_problem(shape, true, true);
    const NormResult best = run(problem);
    EXPECT_EQ(run(problem, nullptr, on_threads(3)), best);
    for (const Isa isa : {Isa::kPortable, Isa::kAvx2}) {
      const IsaLimit limit(isa);
      EXPECT_EQ(run(problem), best) << to_string(isa) << ", " << shape.channels << " channels";
    }
  }
}

TEST(BatchNormTest, OfBf16IsThatOfF32RoundedOnce) {
  for (const BatchNormShape& shape : shapes()) {
    for (const bool has_residual : {false, true}) {
      const NormProblem problem = make_norm_problem(shape, true, has_residual);
      NormProblem wide = problem;
      for (Floats* values : {&wide.x, &wide.residual, &wide.gradient_y}) {
        *values = in_f32(rounded_to<Bf16>(*values));
      }
      NormResult expected = run(wide);
      for (Floats* values : {&expected.y, &expected.gradient_x, &expected.gradient_residual}) {
        *values = in_f32(rounded_to<Bf16>(*values));
      }
      for (const Isa isa : {Isa::kAvx512, Isa::kAvx2, Isa::kPortable}) {
        const IsaLimit limit(isa);
        EXPECT_EQ(run_as<Bf16>(problem, nullptr, on_caller), expected)
            << to_string(isa) << ", " << shape.channels << " channels";
      }
    }
  }
}

/// As torch does: what is NaN shows, in results, gradients and running statistics.
TEST(BatchNormTest, ReluPassesNanAndItsGradient) {
  for (const BatchNormShape& shape : {BatchNormShape{2, 3, 35, false}, {2, 35, 3, true}}) {
    for (Floats NormProblem::* place : {&NormProblem::x, &NormProblem::residual}) {
      NormProblem problem = make_norm_problem(shape, true, true);
      (problem.*place)[107] = std::nanf("");
      const auto expected = reference_of(problem);
      EXPECT_TRUE(std::isnan(expected.y[107]));
      EXPECT_EQ(expected.gradient_residual[107], problem.gradient_y[107]);
      for (const Isa isa : {Isa::kPortable, Isa::kAvx2, Isa::kAvx512}) {
        const IsaLimit limit(isa);
        const NormResult result = run(problem);
        expect_near(result.y, expected.y, "y");
        expect_near(result.mean, expected.mean, "mean");
        expect_near(result.gradient_x, expected.gradient_x, "gradient_x");
        expect_near(result.gradient_residual, expected.gradient_residual, "gradient_residual");
        for (std::int64_t c = 0; c < shape.channels; ++c) {
          EXPECT_EQ(std::isnan(result.variance[c]), std::isnan(result.mean[c])) << c;
        }
      }
    }
  }
}

TEST(BatchNormTest, TheReferenceGradientIsTheDerivative) {
  const NormProblem problem = make_norm_problem({2, 2, 5, false}, true, true);
  const auto weight = widened(problem.gradient_y);
  std::vector<double> x = widened(problem.x), residual = widened(problem.residual);
  std::vector<double> gamma = widened(problem.gamma), beta = widened(problem.beta);
  const auto loss = [&] {
    const reference::BatchNorm<double> norm(problem.options, problem.shape, x, residual, gamma,
                                            beta, weight);
    double sum = 0;
    for (std::size_t i = 0; i < weight.size(); ++i) sum += norm.y[i] * weight[i];
    return sum;
  };
  const auto check = [&](std::vector<double>& values, const std::vector<double>& gradient) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double before = values[i];
      values[i] = before + 1e-6;
      const double above = loss();
      values[i] = before - 1e-6;
      EXPECT_NEAR((above - loss()) / 2e-6, gradient[i], 1e-6) << i;
      values[i] = before;
    }
  };
  const auto norm = reference_of(problem);
  check(x, norm.gradient_x);
  check(residual, norm.gradient_residual);
  check(gamma, norm.gradient_gamma);
  check(beta, norm.gradient_beta);
}

TEST(BatchNormTest, ResultsMayReplaceTheirSources) {
  NormProblem problem = make_norm_problem({2, 5, 33, false}, true, true);
  const NormResult expected = run(problem);
  NormResult result(problem.shape);
  const BatchNormStatistics statistics{result.mean.data(), result.inverse.data(), &result.count};
  Floats y = problem.residual;
  batch_norm_forward(problem.options, problem.shape,
                     {.x = problem.x.data(),
                      .residual = y.data(),
                      .gamma = problem.gamma.data(),
                      .beta = problem.beta.data(),
                      .y = y.data(),
                      .mask = result.mask.data(),
                      .statistics = statistics});
  EXPECT_EQ(y, expected.y);
  Floats gradient = problem.gradient_y;
  batch_norm_backward(problem.shape, {.gradient_y = gradient.data(),
                                      .x = problem.x.data(),
                                      .gamma = problem.gamma.data(),
                                      .mask = result.mask.data(),
                                      .statistics = statistics,
                                      .gradient_x = result.gradient_x.data(),
                                      .gradient_residual = gradient.data(),
                                      .gradient_gamma = result.gradient_gamma.data(),
                                      .gradient_beta = result.gradient_beta.data()});
  EXPECT_EQ(gradient, expected.gradient_residual);
  EXPECT_EQ(result.gradient_x, expected.gradient_x);
}

/// Two threads as two ranks.
class ThreadGroup final : public StatisticsGroup {
 public:
  ThreadGroup(std::barrier<>& barrier, std::vector<double>* (&values)[2], int rank)
      : barrier_(barrier), values_(values), rank_(rank) {}

  void sum(std::span<double> values) override {
    std::vector<double> own(values.begin(), values.end());
    values_[rank_] = &own;
    barrier_.arrive_and_wait();
    for (std::size_t i = 0; i < own.size(); ++i) values[i] = (*values_[0])[i] + (*values_[1])[i];
    barrier_.arrive_and_wait();
  }

 private:
  std::barrier<>& barrier_;
  std::vector<double>* (&values_)[2];
  int rank_;
};

/// Calls `rank(r, group)` on two ranks.
template <typename Rank>
void on_two_ranks(const Rank& rank) {
  std::barrier<> barrier(2);
  std::vector<double>* values[2] = {};
  const auto run_rank = [&](int r) {
    ThreadGroup group(barrier, values, r);
    rank(r, group);
  };
  std::thread other(run_rank, 1);
  run_rank(0);
  other.join();
}

TEST(BatchNormTest, RanksOfAGroupNormaliseAsOne) {
  for (const bool has_channels_last : {false, true}) {
    const BatchNormShape whole{3, 4, 10, has_channels_last};
    const NormProblem problem = make_norm_problem(whole, true, true);
    const auto expected = reference_of(problem);
    std::vector<NormResult> results(2, NormResult(whole));
    on_two_ranks([&](int r, ThreadGroup& group) {
      const std::int64_t begin = r == 0 ? 0 : 40, count = r == 0 ? 40 : 80;
      NormProblem part = problem;
      part.shape.batch = count / 40;
      for (Floats* all : {&part.x, &part.residual, &part.gradient_y}) {
        *all = Floats(all->begin() + begin, all->begin() + begin + count);
      }
      results[r] = run(part, &group);
    });
    Floats y = results[0].y, gradient = results[0].gradient_x, gamma = results[0].gradient_gamma;
    y.insert(y.end(), results[1].y.begin(), results[1].y.end());
    gradient.insert(gradient.end(), results[1].gradient_x.begin(), results[1].gradient_x.end());
    for (int c = 0; c < 4; ++c) gamma[c] += results[1].gradient_gamma[c];
    expect_near(y, expected.y, "y");
    expect_near(gradient, expected.gradient_x, "gradient_x");
    expect_near(gamma, expected.gradient_gamma, "gradient_gamma");
  }
}

TEST(BatchNormTest, ARankWithoutElementsTakesPartAndStrandsNobody) {
  for (const bool has_channels_last : {false, true}) {
    const NormProblem problem = make_norm_problem({2, 4, 10, has_channels_last}, true, true);
    const NormResult expected = run(problem);
    const NormProblem nothing = make_norm_problem({0, 4, 10, has_channels_last}, true, true);
    std::vector<NormResult> results(2, NormResult(problem.shape));
    on_two_ranks(
        [&](int r, ThreadGroup& group) { results[r] = run(r == 0 ? problem : nothing, &group); });
    expect_near(results[0].y, widened(expected.y), "y");
    expect_near(results[0].gradient_x, widened(expected.gradient_x), "gradient_x");
    EXPECT_EQ(results[0].gradient_gamma, expected.gradient_gamma);
    EXPECT_EQ(results[1].mean, results[0].mean);
    EXPECT_EQ(results[1].count, 20);
    EXPECT_EQ(results[1].gradient_gamma, Floats(4, 0.0F));
  }
}

TEST(BatchNormTest, ABadCallOfOneRankIsAnErrorOfAll) {
  const NormProblem problem = make_norm_problem({2, 4, 10, false}, true, true);
  std::string errors[2];
  on_two_ranks([&](int r, ThreadGroup& group) {
    NormResult result(problem.shape);
    try {
      batch_norm_forward(problem.options, problem.shape,
                         {.x = problem.x.data(),
                          .gamma = problem.gamma.data(),
                          .beta = problem.beta.data(),
                          .y = result.y.data(),
                          .mask = r == 0 ? nullptr : result.mask.data(),
                          .statistics = {result.mean.data(), result.inverse.data(), &result.count}},
                         &group);
    } catch (const Error& error) {
      errors[r] = error.message();
    }
  });
  EXPECT_THAT(errors[0], testing::HasSubstr("keeps a mask"));
  EXPECT_THAT(errors[1], testing::HasSubstr("1 other ranks"));
}

TEST(BatchNormTest, AGroupOfOneElementIsAnErrorOfAll) {
  int num_errors[2] = {};
  on_two_ranks([&](int r, ThreadGroup& group) {
    EXPECT_THROW(run(make_norm_problem({r, 3, 1, false}, false, false), &group), Error);
    ++num_errors[r];
  });
  EXPECT_EQ(num_errors[0] + num_errors[1], 2);
}

TEST(BatchNormTest, OneElementHasNoDeviation) {
  EXPECT_THROW(run(make_norm_problem({1, 3, 1, false}, false, false)), Error);
  EXPECT_THROW(run(make_norm_problem({0, 3, 5, true}, false, false)), Error);
}

}  // namespace
}  // namespace trireme::kernels
