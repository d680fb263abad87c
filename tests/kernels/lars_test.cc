#include "trireme/kernels/optimizer/lars.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/kernels/tensor_steps.h"

namespace trireme::kernels {
namespace {

/// As the header's formula is, in f64.
void reference_lars(const LarsOptions& o, const Doubles& g, Doubles& b, Doubles& p) {
  const bool adapts = o.adapts && norm(p) > 0 && norm(g) > 0;
  const double ratio =
      adapts ? o.trust * norm(p) / (norm(g) + o.weight_decay * norm(p) + o.epsilon) : 1;
  for (std::size_t i = 0; i < p.size(); ++i) {
    b[i] = o.momentum * b[i] + ratio * (g[i] + o.weight_decay * p[i]);
    p[i] -= o.learning_rate * b[i];
  }
}

TEST(LarsTest, IsItsFormula) {
  for (const bool adapts : {false, true}) {
    const LarsOptions options{.learning_rate = 0.5, .weight_decay = 0.01, .adapts = adapts};
    expect_formula([&]<typename State>(State, std::int64_t n) {
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

TEST(LarsTest, ZerosHaveTheRatioOne) {
  Floats p(20), b(20), g(20, 1);
  lars({.learning_rate = 0.5}, g.data(), b.data(), p.data(), 20);
  EXPECT_NEAR(p[19], -0.5, 1e-6);
}

}  // namespace
}  // namespace trireme::kernels
