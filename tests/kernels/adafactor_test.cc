#include "trireme/kernels/optimizer/adafactor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/kernels/random_numbers.h"
#include "tests/kernels/reference/adafactor.h"
#include "trireme/error.h"
#include "trireme/kernels/isa.h"

namespace trireme::kernels {
namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

constexpr AdafactorShape kShapes[] = {{1, 0, 5},   {0, 3, 3},   {1, 1, 1},   {1, 1, 17},
                                      {1, 5, 15},  {3, 4, 16},  {2, 33, 65}, {1, 128, 100},
                                      {1, 2, 513}, {1, 700, 31}};

const AdafactorOptions kOptions[] = {
    {},
    {.warms_up = true, .clip = 0.5},
    {.scales_by_parameter = false, .beta1 = 0.9},
    {.learning_rate = 0.05, .decay_exponent = 0.5, .beta1 = 0.9, .weight_decay = 0.1},
};

template <typename State>
void expect_values(const std::vector<State>& ours, const Doubles& expected, double tolerance) {
  for (std::size_t i = 0; i < ours.size(); ++i) {
    ASSERT_NEAR(to_f32(ours[i]), expected[i], tolerance * std::max(1.0, std::abs(expected[i])))
        << i;
  }
}

/// Three steps on every set of instructions: the reference is near, all give the same bits.
///
/// step   called with (step, gradient, m, parameter) as floats and as doubles.
template <typename State, typename Step>
void expect_steps(std::int64_t n, double tolerance, const Step& make_step) {
  Floats best;
  for (const Isa isa : {Isa::kAvx512, Isa::kAvx2, Isa::kPortable}) {
    const IsaLimit limit(isa);
    auto step_of = make_step();
    Floats p = random_numbers<float>(n, 1, 0);
    std::vector<State> m(n);
    Doubles expected = widened(p), expected_m(n);
    for (int step = 1; step <= 3; ++step) {
      const Floats g = random_numbers<float>(n, 10 + step, 2);
      step_of(step, g, m, p);
      step_of(step, widened(g), expected_m, expected);
    }
    expect_values(p, expected, tolerance);
    if (best.empty()) best = p;
    EXPECT_EQ(p, best) << n << " elements, " << to_string(isa);
  }
}

/// A step of matrices: ours or the reference's, by the type of the elements.
struct MatrixStep {
  AdafactorOptions options;
  AdafactorShape shape;
  Floats row = Floats(shape.num_matrices * shape.rows);
  Floats column = Floats(shape.num_matrices * shape.columns);
  Doubles expected_row = Doubles(row.size()), expected_column = Doubles(column.size());

  template <typename State>
  void operator()(int step, const Floats& g, std::vector<State>& m, Floats& p) {
    adafactor(options, step, shape, g.data(), row.data(), column.data(), m.data(), p.data());
  }
  void operator()(int step, const Doubles& g, Doubles& m, Doubles& p) {
    reference::adafactor(options, step, shape, g, expected_row, expected_column, m, p);
  }
};

struct VectorStep {
  AdafactorOptions options;
  std::int64_t n;
  Floats v = Floats(n);
  Doubles expected_v = Doubles(n);

  template <typename State>
  void operator()(int step, const Floats& g, std::vector<State>& m, Floats& p) {
    adafactor(options, step, g.data(), v.data(), m.data(), p.data(), n);
  }
  void operator()(int step, const Doubles& g, Doubles& m, Doubles& p) {
    reference::adafactor(options, step, g, expected_v, m, p);
  }
};

TEST(AdafactorTest, MatricesFollowTheFormula) {
  for (const AdafactorOptions& options : kOptions) {
    for (const AdafactorShape& shape : kShapes) {
      const std::int64_t n = shape.num_matrices * shape.rows * shape.columns;
      const auto make_step = [&] { return MatrixStep{options, shape}; };
      expect_steps<float>(n, 1e-6, make_step);
      expect_steps<Bf16>(n, 2e-3, make_step);
    }
  }
}

TEST(AdafactorTest, VectorsFollowTheFormula) {
  for (const AdafactorOptions& options : kOptions) {
    for (const std::int64_t n : {0, 1, 15, 16, 17, 1000, 16384, 16385}) {
      const auto make_step = [&] { return VectorStep{options, n}; };
      expect_steps<float>(n, 1e-6, make_step);
      expect_steps<Bf16>(n, 2e-3, make_step);
    }
  }
}

TEST(AdafactorTest, RootsAreRoundedOnce) {
  // One row: its root is 1, a column's moment is g^2, and p becomes -u.
  constexpr std::int64_t kColumns = 1000;
  const AdafactorOptions options{
      .learning_rate = 1, .scales_by_parameter = false, .clip = 10, .epsilon1 = 0};
  const Floats g = random_numbers<float>(kColumns, 1, 5);
  Floats row(1), column(kColumns), p(kColumns);
  float* const none = nullptr;
  adafactor(options, 1, {1, 1, kColumns}, g.data(), row.data(), column.data(), none, p.data());
  for (std::int64_t j = 0; j < kColumns; ++j) {
    const auto root = static_cast<float>(1 / std::sqrt(static_cast<double>(column[j])));
    ASSERT_EQ(p[j], -g[j] * root) << j;
  }
}

TEST(AdafactorTest, TheFirstStepMovesByTheRelativeRate) {
  // With v = g^2 the update is the sign of g; the parameter's rms is 2.
  Floats p = {2, -2}, g = {5, -1e-3F}, v = {0, 0};
  float* const none = nullptr;
  adafactor({}, 1, g.data(), v.data(), none, p.data(), 2);
  EXPECT_NEAR(p[0], 1.98, 1e-6);
  EXPECT_NEAR(p[1], -1.98, 1e-6);
}

TEST(AdafactorTest, GradientsOfZeroChangeNothing) {
  Floats p(6, 0.5F), g(6), row(2), column(3);
  float* const none = nullptr;
  adafactor({}, 1, {1, 2, 3}, g.data(), row.data(), column.data(), none, p.data());
  EXPECT_EQ(p, Floats(6, 0.5F));
}

TEST(AdafactorTest, RefusesWhatMakesNoSense) {
  float x = 1;
  float* const none = nullptr;
  EXPECT_THROW(adafactor({}, 0, &x, &x, &x, &x, 1), Error);
  EXPECT_THROW(adafactor({}, 1, &x, &x, &x, &x, -1), Error);
  EXPECT_THROW(adafactor({}, 1, {1, -1, 1}, &x, &x, &x, &x, &x), Error);
  EXPECT_THROW(adafactor({.beta1 = 0.9}, 1, {1, 1, 1}, &x, &x, &x, none, &x), Error);
}

}  // namespace
}  // namespace trireme::kernels
