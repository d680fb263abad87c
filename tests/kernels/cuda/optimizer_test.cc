// The passes of GPUs' optimizers, run on the host: the bits of the processors' kernels.

#include "trireme/kernels/cuda/optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/kernels/cuda/orders.h"
#include "tests/kernels/random_numbers.h"
#include "trireme/base/cuda/stream.h"
#include "trireme/error.h"
#include "trireme/kernels/cuda/layerwise_passes.h"
#include "trireme/kernels/cuda/optimizer_passes.h"

namespace trireme::kernels::cuda {
namespace {

constexpr std::int64_t kTensorSizes[] = {0, 1, 15, 17, 1000, 16385, 33001};

/// What a step changes; moments are kept as `State`.
template <typename T, typename State = T>
struct Tensor {
  explicit Tensor(std::int64_t n) : p(random_numbers<T>(n, 1, 0)), m(n), v(n) {}
  bool operator==(const Tensor& other) const {
    return widened(p) == widened(other.p) && widened(m) == widened(other.m) &&
           widened(v) == widened(other.v) && square == other.square;
  }

  std::vector<T> p;
  std::vector<State> m, v;
  double square = 0;
};

std::vector<std::byte> layerwise_workspace_of(std::int64_t n) {
  return std::vector<std::byte>(internal::LayerwiseWorkspace(internal::Cutter(), n).bytes,
                                std::byte{0xFF});
}

/// Three steps of `ours(each, step, gradient, tensor)`, in every order, and of `its`.
template <typename T, typename State, typename Ours, typename Its>
void expect_bits(const Ours& ours, const Its& its) {
  for (const std::int64_t n : kTensorSizes) {
    const Tensor<T, State> start(n);
    const std::vector<T> g = random_numbers<T>(n, 10, 2);
    Tensor<T, State> expected = start;
    for (int step = 1; step <= 3; ++step) its(step, g.data(), expected);
    for (const Order order : kOrders) {
      Tensor<T, State> tensor = start;
      for (int step = 1; step <= 3; ++step) ours(InOrder(order), step, g.data(), tensor);
      EXPECT_TRUE(tensor == expected) << n << " elements, order " << static_cast<int>(order);
    }
  }
}

template <typename T, typename State>
void expect_bits_of_sgd(const SgdOptions& options) {
  expect_bits<T, State>(
      [&](const InOrder& each, int step, const T* g, Tensor<T, State>& t) {
        internal::sgd_passes(options, step == 1, g, t.m.data(), t.p.data(), std::ssize(t.p), each);
      },
      [&](int step, const T* g, Tensor<T, State>& t) {
        kernels::sgd(options, step == 1, g, t.m.data(), t.p.data(), std::ssize(t.p));
      });
}

template <typename T, typename State>
void expect_bits_of_adamw(const AdamwOptions& options) {
  expect_bits<T, State>(
      [&](const InOrder& each, int step, const T* g, Tensor<T, State>& t) {
        internal::adamw_passes(options, step, g, t.m.data(), t.v.data(), t.p.data(),
                               std::ssize(t.p), each);
      },
      [&](int step, const T* g, Tensor<T, State>& t) {
        kernels::adamw(options, step, g, t.m.data(), t.v.data(), t.p.data(), std::ssize(t.p));
      });
}

TEST(CudaOptimizerPasses, SgdHasTheBitsOfAProcessor) {
  for (const SgdOptions& options :
       {SgdOptions{}, SgdOptions{.momentum = 0.9}, SgdOptions{.weight_decay = 0.1},
        SgdOptions{.momentum = 0.9, .dampening = 0.3, .weight_decay = 0.01},
        SgdOptions{.momentum = 0.8, .weight_decay = 0.01, .nesterov = true}}) {
    expect_bits_of_sgd<float, float>(options);
    expect_bits_of_sgd<double, double>(options);
    expect_bits_of_sgd<float, Bf16>(options);
  }
}

TEST(CudaOptimizerPasses, AdamwHasTheBitsOfAProcessor) {
  for (const AdamwOptions& options : {AdamwOptions{}, AdamwOptions{.weight_decay = 0}}) {
    expect_bits_of_adamw<float, float>(options);
    expect_bits_of_adamw<double, double>(options);
    expect_bits_of_adamw<float, Bf16>(options);
  }
}

TEST(CudaOptimizerPasses, AdamwRoundedAtRandomHasTheBitsOfAProcessor) {
  constexpr std::uint64_t kSeed = 0xFEDCBA9876543210;
  expect_bits<Bf16, Bf16>(
      [](const InOrder& each, int step, const Bf16* g, Tensor<Bf16>& t) {
        internal::adamw_passes({}, step, kSeed + step, g, t.m.data(), t.v.data(), t.p.data(),
                               std::ssize(t.p), each);
      },
      [](int step, const Bf16* g, Tensor<Bf16>& t) {
        kernels::adamw({}, step, kSeed + step, g, t.m.data(), t.v.data(), t.p.data(),
                       std::ssize(t.p));
      });
}

template <typename State>
void expect_bits_of_lamb() {
  for (const LambOptions& options : {LambOptions{}, LambOptions{.weight_decay = 0},
                                     LambOptions{.weight_decay = 0, .adapts_always = false}}) {
    expect_bits<float, State>(
        [&](const InOrder& each, int step, const float* g, Tensor<float, State>& t) {
          auto workspace = layerwise_workspace_of(std::ssize(t.p));
          internal::lamb_passes(options, step, g, t.m.data(), t.v.data(), t.p.data(),
                                std::ssize(t.p), workspace, each);
        },
        [&](int step, const float* g, Tensor<float, State>& t) {
          lamb(options, step, g, t.m.data(), t.v.data(), t.p.data(), std::ssize(t.p));
        });
  }
}

TEST(CudaOptimizerPasses, LambHasTheBitsOfAProcessor) {
  expect_bits_of_lamb<float>();
  expect_bits_of_lamb<Bf16>();
}

template <typename State>
void expect_bits_of_lars() {
  for (const LarsOptions& options :
       {LarsOptions{}, LarsOptions{.weight_decay = 0.1}, LarsOptions{.adapts = false}}) {
    expect_bits<float, State>(
        [&](const InOrder& each, int /*step*/, const float* g, Tensor<float, State>& t) {
          auto workspace = layerwise_workspace_of(std::ssize(t.p));
          internal::lars_passes(options, g, t.m.data(), t.p.data(), std::ssize(t.p), workspace,
                                each);
        },
        [&](int /*step*/, const float* g, Tensor<float, State>& t) {
          lars(options, g, t.m.data(), t.p.data(), std::ssize(t.p));
        });
  }
}

TEST(CudaOptimizerPasses, LarsHasTheBitsOfAProcessor) {
  expect_bits_of_lars<float>();
  expect_bits_of_lars<Bf16>();
}

template <typename State>
void expect_bits_of_novograd() {
  for (const NovogradOptions& options :
       {NovogradOptions{}, NovogradOptions{.weight_decay = 0.1, .averages_gradients = true}}) {
    expect_bits<float, State>(
        [&](const InOrder& each, int step, const float* g, Tensor<float, State>& t) {
          auto workspace = layerwise_workspace_of(std::ssize(t.p));
          internal::novograd_passes(options, step, g, &t.square, t.m.data(), t.p.data(),
                                    std::ssize(t.p), workspace, each);
        },
        [&](int step, const float* g, Tensor<float, State>& t) {
          novograd(options, step, g, t.square, t.m.data(), t.p.data(), std::ssize(t.p));
        });
  }
}

TEST(CudaOptimizerPasses, NovogradHasTheBitsOfAProcessor) {
  expect_bits_of_novograd<float>();
  expect_bits_of_novograd<Bf16>();
}

TEST(CudaOptimizerPasses, ZerosHaveTheTrustRatioOne) {
  const std::vector<float> g(40, 0.5F);
  std::vector<float> one(40), other(40), m(40), its_m(40);
  auto workspace = layerwise_workspace_of(40);
  internal::lars_passes({}, g.data(), m.data(), one.data(), 40, workspace, InOrder());
  kernels::lars({}, g.data(), its_m.data(), other.data(), 40);
  EXPECT_EQ(one, other);
}

/// Instead of a GPU: launches of anything are failures.
struct NoLaunch {
  template <typename Pass>
  void operator()(std::int64_t n, const Pass& /*pass*/) const {
    ADD_FAILURE() << "a pass of " << n;
  }
};

TEST(CudaOptimizerPasses, NothingIsLaunchedForNoElements) {
  auto workspace = layerwise_workspace_of(0);
  double v = 5;
  internal::lamb_passes<float>({}, 1, nullptr, nullptr, nullptr, nullptr, 0, workspace, NoLaunch());
  internal::lars_passes<float>({}, nullptr, nullptr, nullptr, 0, workspace, NoLaunch());
  internal::novograd_passes<float>({}, 1, nullptr, &v, nullptr, nullptr, 0, workspace, NoLaunch());
  EXPECT_EQ(v, 5);
}

TEST(CudaOptimizerPasses, BadArgumentsAreRefused) {
  std::vector<std::byte> small(8);
  float x = 0;
  double v = 0;
  EXPECT_THROW(internal::adamw_passes<float>({}, 0, &x, &x, &x, &x, 1, InOrder()), Error);
  EXPECT_THROW(internal::lamb_passes({}, 1, &x, &x, &x, &x, 1, small, InOrder()), Error);
  EXPECT_THROW(internal::lars_passes({}, &x, &x, &x, 1, small, InOrder()), Error);
  EXPECT_THROW(internal::novograd_passes({}, 1, &x, &v, &x, &x, 1, small, InOrder()), Error);
}

}  // namespace
}  // namespace trireme::kernels::cuda
