// The passes of GPUs' sliding windows, run on the host: the bits of the processors' kernels.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "packs/volume/cuda/sliding_window_passes.h"
#include "tests/kernels/cuda/orders.h"
#include "tests/packs/volume/cuda/sliding_window_problem.h"
#include "trireme/error.h"

namespace trireme::volume::cuda {
namespace {

using namespace kernels;
using namespace kernels::cuda;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(CudaWindowPasses, PredictionsHaveTheBitsOfAProcessor) {
  for (const std::int64_t width : WindowProblem::kWidths) {
    const WindowProblem p(width);
    const std::vector<float> factors = p.weights.factors();
    const DeviceWindowWeights weights{p.weights.patch(), factors.data(), p.weights.smallest()};
    for (const Order order : kOrders) {
      const InOrder each(order);
      std::vector<float> sum(p.sum.size()), norm(p.norm.size());
      for (std::size_t w = 0; w < p.windows.size(); ++w) {
        internal::accumulate_window_passes(weights, p.volume, p.windows[w], p.num_classes,
                                           p.logits.data() + w * p.window_logits(), sum.data(),
                                           norm.data(), each);
      }
      EXPECT_EQ(sum, p.sum) << width;
      EXPECT_EQ(norm, p.norm) << width;
      std::vector<std::uint8_t> labels(p.labels.size(), 7);
      internal::argmax_classes_passes(p.volume, p.num_classes, sum.data(), labels.data(), each);
      EXPECT_EQ(labels, p.labels) << width;
      internal::average_windows_passes(p.volume, p.num_classes, norm.data(), sum.data(), each);
      EXPECT_EQ(sum, p.means) << width;
    }
  }
}

TEST(CudaWindowPasses, TheFirstOfEqualScoresWins) {
  constexpr float kLeast = -std::numeric_limits<float>::infinity();
  const std::vector<float> scores = {kLeast, 1, 0, kLeast, 1, -0.0F, kLeast, 2, 0};
  std::vector<std::uint8_t> labels(3, 9);
  internal::argmax_classes_passes({1, 1, 3}, 3, scores.data(), labels.data(), InOrder());
  EXPECT_EQ(labels, (std::vector<std::uint8_t>{0, 2, 0}));
}

TEST(CudaWindowPasses, NanLosesAndAHoleIsNan) {
  const std::vector<float> scores = {kNan, kNan, -2, kNan};
  std::vector<std::uint8_t> labels(2, 9);
  internal::argmax_classes_passes({1, 1, 2}, 2, scores.data(), labels.data(), InOrder());
  EXPECT_EQ(labels, (std::vector<std::uint8_t>{1, 0}));
  std::vector<float> sum = {0, 3}, norm = {0, 2};
  internal::average_windows_passes({1, 1, 2}, 1, norm.data(), sum.data(), InOrder());
  EXPECT_TRUE(std::isnan(sum[0]));
  EXPECT_EQ(sum[1], 1.5F);
}

TEST(CudaWindowPasses, BadShapesAreRefused) {
  const auto add = [](const VolumeShape& patch, const Voxel& begin, std::int64_t num_classes) {
    internal::accumulate_window_passes({patch, nullptr, 0}, {4, 4, 4}, begin, num_classes, nullptr,
                                       nullptr, nullptr, InOrder());
  };
  EXPECT_THROW(add({2, 2, 2}, {0, 3, 0}, 1), Error);
  EXPECT_THROW(add({2, 2, 2}, {0, 0, -1}, 1), Error);
  EXPECT_THROW(add({2, 0, 2}, {0, 0, 0}, 1), Error);
  EXPECT_THROW(add({2, 2, 2}, {0, 0, 0}, 0), Error);
  EXPECT_THROW(internal::average_windows_passes({0, 1, 1}, 1, nullptr, nullptr, InOrder()), Error);
  EXPECT_THROW(internal::argmax_classes_passes({1, 1, 1}, 257, nullptr, nullptr, InOrder()), Error);
}

}  // namespace
}  // namespace trireme::volume::cuda
