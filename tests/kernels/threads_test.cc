// Kernels that threads share give the bits of one thread, also where sizes make many pieces.

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <vector>

#include "tests/kernels/random_numbers.h"
#include "tests/kernels/same_bits.h"
#include "trireme/kernels/norm/norm.h"
#include "trireme/kernels/optimizer/adamw.h"
#include "trireme/kernels/optimizer/lamb.h"
#include "trireme/kernels/optimizer/lars.h"
#include "trireme/kernels/optimizer/novograd.h"
#include "trireme/kernels/optimizer/sgd.h"
#include "trireme/kernels/spread.h"

namespace trireme::kernels {
namespace {

using tests::append_bits;
using tests::Bytes;
using tests::expect_same_bits;

constexpr std::int64_t kManyElements = 3 * (1 << 18) + 1234;

/// Three steps; `step` is given the moments m and v, the gradient and the parameter.
template <typename T, typename State, typename Step>
void expect_step(const char* what, const Step& step) {
  const std::vector<T> start = random_numbers<T>(kManyElements, 1, 0);
  expect_same_bits(what, [&](const Spread& spread) {
    std::vector<T> p = start;
    std::vector<State> m(p.size()), v(p.size());
    for (int i = 1; i <= 3; ++i) {
      const std::vector<T> g = random_numbers<T>(kManyElements, 1 + i, 0);
      step(i, g.data(), m.data(), v.data(), p.data(), spread);
    }
    Bytes made;
    append_bits(p, made);
    append_bits(m, made);
    append_bits(v, made);
    return made;
  });
}

TEST(Threads, ChangeNothingInOptimizersByElement) {
  const std::int64_t n = kManyElements;
  const auto adamw_step = [](int step, const auto* g, auto* m, auto* v, auto* p,
                             const Spread& spread) {
    using T = std::remove_cvref_t<decltype(*p)>;
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(*m)>, T>) {
      adamw({}, step, g, m, v, p, n, SquareRoots<T>(nullptr), spread);
    } else {
      adamw({}, step, g, m, v, p, n, spread);
    }
  };
  expect_step<float, float>("adamw", adamw_step);
  expect_step<double, double>("adamw in f64", adamw_step);
  expect_step<float, Bf16>("adamw with bf16 moments", adamw_step);
  const auto sgd_step = [](int step, const auto* g, auto* m, auto*, auto* p, const Spread& spread) {
    sgd({.momentum = 0.9, .weight_decay = 1e-3}, step == 1, g, m, p, n, spread);
  };
  expect_step<float, float>("sgd", sgd_step);
  expect_step<float, Bf16>("sgd with bf16 moments", sgd_step);
}

TEST(Threads, ChangeNothingInRandomRounding) {
  const auto halves = [](unsigned seed) {
    std::vector<Bf16> made;
    for (const float x : random_numbers<float>(kManyElements, seed, 0)) made.push_back(to_bf16(x));
    return made;
  };
  const std::vector<Bf16> gradient = halves(1), start = halves(2);
  expect_same_bits("adamw in bf16", [&](const Spread& spread) {
    std::vector<Bf16> p = start, m(p.size()), v(p.size());
    adamw({}, 1, 99, gradient.data(), m.data(), v.data(), p.data(), kManyElements, spread);
    Bytes made;
    append_bits(p, made);
    append_bits(m, made);
    append_bits(v, made);
    return made;
  });
}

TEST(Threads, ChangeNothingInOptimizersWithNorms) {
  const std::int64_t n = kManyElements;
  const auto lamb_step = [](int step, const float* g, auto* m, auto* v, float* p,
                            const Spread& spread) { lamb({}, step, g, m, v, p, n, spread); };
  expect_step<float, float>("lamb", lamb_step);
  expect_step<float, Bf16>("lamb with bf16 moments", lamb_step);
  expect_step<float, float>(
      "lars", [](int, const float* g, float* m, float*, float* p, const Spread& spread) {
        lars({.weight_decay = 1e-3}, g, m, p, n, spread);
      });
  double norm = 0;
  expect_step<float, float>(
      "novograd", [&](int step, const float* g, float* m, float*, float* p, const Spread& spread) {
        novograd({.weight_decay = 1e-3}, step, g, norm, m, p, n, spread);
      });
}

TEST(Threads, ChangeNothingInNorms) {
  const std::vector<float> x = random_numbers<float>(kManyElements, 1, 0);
  expect_same_bits("square_norm", [&](const Spread& spread) {
    Bytes made;
    append_bits(std::vector{square_norm(x.data(), kManyElements, spread)}, made);
    return made;
  });
}

}  // namespace
}  // namespace trireme::kernels
