#include "tests/kernels/reference/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "tests/kernels/random_numbers.h"
#include "trireme/error.h"
#include "trireme/kernels/isa.h"
#include "trireme/kernels/optimizer/adamw.h"
#include "trireme/kernels/optimizer/sgd.h"

namespace trireme::kernels {
namespace {

template <typename T>
void expect_bits(const std::vector<T>& actual, const std::vector<T>& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(std::memcmp(&actual[i], &expected[i], sizeof(T)), 0) << "element " << i;
  }
}

constexpr std::int64_t kSizes[] = {0, 1, 7, 8, 9, 31, 33, 63, 64, 65, 1023, 1024, 1025, 4097};

/// Calls `expect(n)` for sizes around those of vectors and pieces, on every set of instructions.
template <typename Expect>
void for_each_size(const Expect& expect) {
  for (const Isa limit : {Isa::kAvx512, Isa::kAvx2, Isa::kPortable}) {
    const IsaLimit limited(limit);
    for (const std::int64_t n : kSizes) expect(n);
  }
}

template <typename T, typename State = T>
void expect_sgd(const SgdOptions& options) {
  for_each_size([&](std::int64_t n) {
    std::vector<T> p = random_numbers<T>(n, 1), p_reference = p;
    std::vector<State> buffer(n), buffer_reference = buffer;
    for (int step = 0; step < 3; ++step) {
      const std::vector<T> g = random_numbers<T>(n, 10 + step);
      sgd(options, step == 0, g.data(), options.momentum == 0 ? nullptr : buffer.data(), p.data(),
          n);
      for (std::int64_t i = 0; i < n; ++i) {
        reference::sgd(options, step == 0, g[i], buffer_reference[i], p_reference[i]);
      }
    }
    expect_bits(p, p_reference);
    expect_bits(buffer, buffer_reference);
  });
}

TEST(Sgd, HasTheBitsOfTheReference) {
  for (const double momentum : {0.0, 0.9}) {
    for (const double decay : {0.0, 1e-4}) {
      for (const double dampening : {0.0, 0.1}) {
        const SgdOptions options{0.013, momentum, dampening, decay, false};
        expect_sgd<float>(options);
        expect_sgd<double>(options);
        expect_sgd<float, Bf16>(options);
      }
    }
  }
  expect_sgd<float>({0.013, 0.9, 0, 1e-4, true});
  expect_sgd<double>({0.013, 0.9, 0, 0, true});
}

TEST(Sgd, FollowsTheFormula) {
  float p = 2, g = 0.5F, buffer = 1;
  float* const none = nullptr;
  sgd({.learning_rate = 0.25}, true, &g, none, &p, 1);
  EXPECT_EQ(p, 1.875F);
  sgd({.learning_rate = 0.25, .momentum = 0.5}, true, &g, &buffer, &p, 1);
  EXPECT_EQ(buffer, 0.5F);
  EXPECT_EQ(p, 1.75F);
  sgd({.learning_rate = 0.25, .momentum = 0.5}, false, &g, &buffer, &p, 1);
  EXPECT_EQ(buffer, 0.75F);
  EXPECT_EQ(p, 1.5625F);
}

template <typename T, typename State = T>
void expect_adamw(const AdamwOptions& options) {
  for_each_size([&](std::int64_t n) {
    std::vector<T> p = random_numbers<T>(n, 1), p_reference = p;
    std::vector<State> m(n), v(n), m_reference = m, v_reference = v;
    for (int step = 1; step <= 3; ++step) {
      const std::vector<T> g = random_numbers<T>(n, 20 + step);
      adamw(options, step, g.data(), m.data(), v.data(), p.data(), n);
      for (std::int64_t i = 0; i < n; ++i) {
        reference::adamw(options, step, g[i], m_reference[i], v_reference[i], p_reference[i]);
      }
    }
    expect_bits(p, p_reference);
    expect_bits(m, m_reference);
    expect_bits(v, v_reference);
  });
}

TEST(Adamw, HasTheBitsOfTheReference) {
  for (const double decay : {0.0, 1e-2}) {
    const AdamwOptions options{3e-3, 0.9, 0.95, 1e-8, decay};
    expect_adamw<float>(options);
    expect_adamw<double>(options);
    expect_adamw<float, Bf16>(options);
  }
}

TEST(Adamw, RoundedAtRandomHasTheBitsOfTheReference) {
  const AdamwOptions options{3e-3, 0.9, 0.999, 1e-8, 1e-2};
  constexpr std::uint64_t kSeed = 0x123456789ABCDEF0;
  for_each_size([&](std::int64_t n) {
    std::vector<Bf16> p = random_numbers<Bf16>(n, 1), m(n), v(n);
    std::vector<Bf16> p_reference = p, m_reference = m, v_reference = v;
    for (int step = 1; step <= 3; ++step) {
      const std::vector<Bf16> g = random_numbers<Bf16>(n, 20 + step);
      adamw(options, step, kSeed + step, g.data(), m.data(), v.data(), p.data(), n);
      for (std::int64_t i = 0; i < n; ++i) {
        reference::adamw(options, step, kSeed + step, i, g[i], m_reference[i], v_reference[i],
                         p_reference[i]);
      }
    }
    expect_bits(p, p_reference);
    expect_bits(m, m_reference);
    expect_bits(v, v_reference);
  });
}

TEST(Adamw, RoundedAtRandomFollowsF32OnAverage) {
  // Steps of 1e-4 from 1 are a fortieth of a unit of bf16: to nearest, none would be taken. v,
  // whose steps shrink to a thousandth of itself, would stand still as well.
  constexpr std::int64_t kNumElements = 20'000;
  std::vector<Bf16> p(kNumElements, to_bf16(1)), m(kNumElements), v(kNumElements);
  float p_f32 = 1, m_f32 = 0, v_f32 = 0;
  const AdamwOptions options{.learning_rate = 1e-4, .weight_decay = 0};
  for (int step = 1; step <= 100; ++step) {
    const Bf16 g = to_bf16(step <= 50 ? 1 : 0.25F);
    const std::vector<Bf16> gradient(kNumElements, g);
    const float g_f32 = to_f32(g);
    adamw(options, step, step, gradient.data(), m.data(), v.data(), p.data(), kNumElements);
    adamw(options, step, &g_f32, &m_f32, &v_f32, &p_f32, 1);
  }
  const auto mean = [](const std::vector<Bf16>& x) {
    double sum = 0;
    for (const Bf16 value : x) sum += to_f32(value);
    return sum / static_cast<double>(x.size());
  };
  EXPECT_NEAR(mean(p), p_f32, 2e-4);
  EXPECT_NEAR(mean(m), m_f32, 1e-3 * m_f32);
  EXPECT_NEAR(mean(v), v_f32, 1e-3 * v_f32);
}

TEST(Adamw, MovesByTheLearningRateAtFirst) {
  // With m = (1 - beta1) g and v = (1 - beta2) g^2 the corrected step is the sign of g.
  for (const float gradient : {1e-3F, 5.0F, -40.0F}) {
    float p = 1, g = gradient, m = 0, v = 0;
    adamw({.learning_rate = 0.125, .weight_decay = 0}, 1, &g, &m, &v, &p, 1);
    EXPECT_NEAR(p, 1 - std::copysign(0.125F, gradient), 1e-5);
  }
}

TEST(Adamw, TakesItsRootsWhereItIsTold) {
  const SquareRoots<float> doubled = [](const float* x, float* root, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) root[i] = 2 * std::sqrt(x[i]);
  };
  float p = 1, g = 1, m = 0, v = 0;
  adamw({.learning_rate = 0.125, .weight_decay = 0}, 1, &g, &m, &v, &p, 1, doubled);
  EXPECT_NEAR(p, 1 - 0.0625, 1e-5);
}

TEST(Adamw, CountsStepsFromOne) {
  float x = 1;
  EXPECT_THROW(adamw({}, 0, &x, &x, &x, &x, 1), Error);
}

}  // namespace
}  // namespace trireme::kernels
