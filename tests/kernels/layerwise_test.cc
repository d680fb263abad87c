#include "trireme/kernels/optimizer/layerwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/kernels/random_numbers.h"
#include "trireme/base/error.h"
#include "trireme/kernels/isa.h"

namespace trireme::kernels {
namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

double norm(const Doubles& x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return std::sqrt(sum);
}

/// As the headers' formulas are, in f64.
void reference_lamb(const LambOptions& o, int step, const Doubles& g, Doubles& m, Doubles& v,
                    Doubles& p) {
  Doubles u(p.size());
  for (std::size_t i = 0; i < p.size(); ++i) {
    m[i] = o.beta1 * m[i] + (1 - o.beta1) * g[i];
    v[i] = o.beta2 * v[i] + (1 - o.beta2) * g[i] * g[i];
    u[i] = m[i] / (1 - std::pow(o.beta1, step)) /
               (std::sqrt(v[i] / (1 - std::pow(o.beta2, step))) + o.epsilon) +
           o.weight_decay * p[i];
  }
  const bool adapts = (o.adapts_always || o.weight_decay != 0) && norm(p) > 0 && norm(u) > 0;
  const double ratio = adapts ? norm(p) / norm(u) : 1;
  for (std::size_t i = 0; i < p.size(); ++i) p[i] -= o.learning_rate * ratio * u[i];
}

void reference_lars(const LarsOptions& o, const Doubles& g, Doubles& b, Doubles& p) {
  const bool adapts = o.adapts && norm(p) > 0 && norm(g) > 0;
  const double ratio =
      adapts ? o.trust * norm(p) / (norm(g) + o.weight_decay * norm(p) + o.epsilon) : 1;
  for (std::size_t i = 0; i < p.size(); ++i) {
    b[i] = o.momentum * b[i] + ratio * (g[i] + o.weight_decay * p[i]);
    p[i] -= o.learning_rate * b[i];
  }
}

void reference_novograd(const NovogradOptions& o, int step, const Doubles& g, double& v, Doubles& m,
                        Doubles& p) {
  const double square = norm(g) * norm(g);
  v = step == 1 ? square : o.beta2 * v + (1 - o.beta2) * square;
  const double beta3 = o.averages_gradients ? 1 - o.beta1 : 1;
  for (std::size_t i = 0; i < p.size(); ++i) {
    m[i] = o.beta1 * m[i] + beta3 * (g[i] / (std::sqrt(v) + o.epsilon) + o.weight_decay * p[i]);
    p[i] -= o.learning_rate * m[i];
  }
}

void expect_near(const Floats& ours, const Doubles& expected, double tolerance) {
  for (std::size_t i = 0; i < ours.size(); ++i) {
    ASSERT_NEAR(ours[i], expected[i], tolerance * std::max(1.0, std::abs(expected[i]))) << i;
  }
}

constexpr std::int64_t kLayerSizes[] = {0, 1, 15, 16, 17, 1000, 16384, 16385, 40001};

/// Runs `ours(step, gradient, parameter)` and `its` in turn, on every set of instructions: the
/// reference is near, and all sets give the same bits.
///
/// make   called with a State, as which moments are kept, and the number of elements.
template <typename State, typename Make>
void expect_reference_with(double tolerance, const Make& make) {
  for (const std::int64_t n : kLayerSizes) {
    Floats best;
    for (const Isa isa : {Isa::kAvx512, Isa::kAvx2, Isa::kPortable}) {
      const IsaLimit limit(isa);
      auto [ours, its] = make(State(), n);
      Floats p = random_numbers<float>(n, 1, 0);
      Doubles expected = widened(p);
      for (int step = 1; step <= 3; ++step) {
        const Floats g = random_numbers<float>(n, 10 + step, 0);
        ours(step, g, p);
        its(step, widened(g), expected);
      }
      expect_near(p, expected, tolerance);
      if (best.empty()) best = p;
      EXPECT_EQ(p, best) << n << " elements, " << to_string(isa);
    }
  }
}

template <typename Make>
void expect_reference(const Make& make) {
  expect_reference_with<float>(1e-5, make);
  expect_reference_with<Bf16>(1e-2, make);
}

TEST(LayerwiseTest, LambIsItsFormula) {
  for (const double decay : {0.0, 0.1}) {
    for (const bool adapts_always : {false, true}) {
      const LambOptions options{.weight_decay = decay, .adapts_always = adapts_always};
      expect_reference([&]<typename State>(State, std::int64_t n) {
        return std::pair(
            [options, m = std::vector<State>(n), v = std::vector<State>(n)](
                int step, const Floats& g, Floats& p) mutable {
              lamb(options, step, g.data(), m.data(), v.data(), p.data(), std::ssize(p));
            },
            [options, m = Doubles(n), v = Doubles(n)](int step, const Doubles& g,
                                                      Doubles& p) mutable {
              reference_lamb(options, step, g, m, v, p);
            });
      });
    }
  }
}

TEST(LayerwiseTest, LarsIsItsFormula) {
  for (const bool adapts : {false, true}) {
    const LarsOptions options{.learning_rate = 0.5, .weight_decay = 0.01, .adapts = adapts};
    expect_reference([&]<typename State>(State, std::int64_t n) {
      return std::pair(
          [options, b = std::vector<State>(n)](int, const Floats& g, Floats& p) mutable {
            lars(options, g.data(), b.data(), p.data(), std::ssize(p));
          },
          [options, b = Doubles(n)](int, const Doubles& g, Doubles& p) mutable {
            reference_lars(options, g, b, p);
          });
    });
  }
}

TEST(LayerwiseTest, NovogradIsItsFormula) {
  for (const bool averages : {false, true}) {
    const NovogradOptions options{.weight_decay = 0.01, .averages_gradients = averages};
    expect_reference([&]<typename State>(State, std::int64_t n) {
      return std::pair(
          [options, v = 0.0, m = std::vector<State>(n)](int step, const Floats& g,
                                                        Floats& p) mutable {
            novograd(options, step, g.data(), v, m.data(), p.data(), std::ssize(p));
          },
          [options, v = 0.0, m = Doubles(n)](int step, const Doubles& g, Doubles& p) mutable {
            reference_novograd(options, step, g, v, m, p);
          });
    });
  }
}

TEST(LayerwiseTest, ZerosHaveTheRatioOne) {
  Floats p(20), m(20), v(20), g(20, 1);
  lamb({.learning_rate = 0.5, .weight_decay = 0}, 1, g.data(), m.data(), v.data(), p.data(), 20);
  EXPECT_NEAR(p[19], -0.5, 1e-5);
  p.assign(20, 0);
  m.assign(20, 0);
  lars({.learning_rate = 0.5}, g.data(), m.data(), p.data(), 20);
  EXPECT_NEAR(p[19], -0.5, 1e-6);
}

TEST(LayerwiseTest, StepsCountFromOne) {
  float x = 0;
  double v = 0;
  EXPECT_THROW(lamb({}, 0, &x, &x, &x, &x, 1), Error);
  EXPECT_THROW(novograd({}, 0, &x, v, &x, &x, 1), Error);
}

}  // namespace
}  // namespace trireme::kernels
