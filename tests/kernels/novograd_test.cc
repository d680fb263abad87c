#include "trireme/kernels/optimizer/novograd.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "tests/kernels/tensor_steps.h"
#include "trireme/error.h"

namespace trireme::kernels {
namespace {

/// As the header's formula is, in f64.
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

TEST(NovogradTest, IsItsFormula) {
  for (const bool averages : {false, true}) {
    const NovogradOptions options{.weight_decay = 0.01, .averages_gradients = averages};
    expect_formula([&]<typename State>(State, std::int64_t n) {
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

TEST(NovogradTest, CountsStepsFromOne) {
  float x = 0;
  double v = 0;
  EXPECT_THROW(novograd({}, 0, &x, v, &x, &x, 1), Error);
}

}  // namespace
}  // namespace trireme::kernels
