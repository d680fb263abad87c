#include "trireme/kernels/optimizer/lamb.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "tests/kernels/tensor_steps.h"
#include "trireme/error.h"

namespace trireme::kernels {
namespace {

/// As the header's formula is, in f64.
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

TEST(LambTest, IsItsFormula) {
  for (const double decay : {0.0, 0.1}) {
    for (const bool adapts_always : {false, true}) {
      const LambOptions options{.weight_decay = decay, .adapts_always = adapts_always};
      expect_formula([&]<typename State>(State, std::int64_t n) {
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

TEST(LambTest, ZerosHaveTheRatioOne) {
  Floats p(20), m(20), v(20), g(20, 1);
  lamb({.learning_rate = 0.5, .weight_decay = 0}, 1, g.data(), m.data(), v.data(), p.data(), 20);
  EXPECT_NEAR(p[19], -0.5, 1e-5);
}

TEST(LambTest, CountsStepsFromOne) {
  float x = 0;
  EXPECT_THROW(lamb({}, 0, &x, &x, &x, &x, 1), Error);
}

}  // namespace
}  // namespace trireme::kernels
