// The passes of GPUs' detection kernels, run on the host: what the processors' kernels give.

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "packs/vision/cuda/nms_passes.h"
#include "packs/vision/cuda/roi_align_passes.h"
#include "packs/vision/kernels/nms.h"
#include "tests/kernels/cuda/orders.h"
#include "tests/packs/vision/cuda/detection_problem.h"
#include "trireme/error.h"

namespace trireme::vision::cuda {
namespace {

using namespace kernels;
using namespace kernels::cuda;

/// The indices, and the count behind them.
std::vector<std::int64_t> kept_by_passes(const NmsCandidates& candidates, double threshold,
                                         std::int64_t capacity, Order order) {
  std::vector<std::int64_t> kept(capacity + 1, -7);
  const internal::NmsSpace size(internal::Cutter(), candidates.n);
  std::vector<std::byte> workspace(size.bytes, std::byte{0xFF});
  internal::fixed_nms_passes(candidates, threshold, {kept.data(), &kept[capacity], capacity},
                             workspace, InOrder(order));
  return kept;
}

TEST(CudaDetectionPasses, NmsKeepsWhatAProcessorKeeps) {
  for (const std::int64_t n : {0, 1, 2, 63, 64, 65, 130, 500}) {
    const BoxProblem p(n);
    for (const double threshold : {0.0, 0.25, 0.5, 1.0}) {
      for (const std::int64_t capacity : {0, 5, 600}) {
        std::vector<std::int64_t> expected(capacity + 1);
        expected[capacity] = vision::fixed_nms(p.boxes, p.scores, p.classes, threshold,
                                               std::span(expected).first(capacity));
        for (const Order order : kOrders) {
          EXPECT_EQ(kept_by_passes({p.boxes.data(), p.scores.data(), p.classes.data(), n},
                                   threshold, capacity, order),
                    expected)
              << n << " boxes, threshold " << threshold;
        }
      }
    }
  }
}

TEST(CudaDetectionPasses, NmsOfOneClass) {
  const BoxProblem p(200);
  const std::vector<std::int64_t> all = vision::nms(p.boxes, p.scores, {.threshold = 0.3});
  std::vector<std::int64_t> expected(201);
  std::ranges::copy(all, expected.begin());
  expected[200] = std::ssize(all);
  EXPECT_EQ(
      kept_by_passes({p.boxes.data(), p.scores.data(), nullptr, 200}, 0.3, 200, Order::kScattered),
      expected);
}

TEST(CudaDetectionPasses, AScoreThatIsNanComesLast) {
  BoxProblem p(3);
  p.scores = {std::numeric_limits<float>::quiet_NaN(), 0.5F, 0.7F};
  const auto kept =
      kept_by_passes({p.boxes.data(), p.scores.data(), nullptr, 3}, 1.0, 3, Order::kForward);
  EXPECT_EQ(kept, (std::vector<std::int64_t>{2, 1, 0, 3}));
}

TEST(CudaDetectionPasses, RoiAlignHasTheBitsOfAProcessor) {
  for (const RoiProblem& p : roi_problems()) {
    std::vector<float> expected(p.gradient.size());
    roi_align(p.options, p.shape, p.features.data(), p.regions.data(), p.kNumRegions,
              expected.data());
    for (const Order order : kOrders) {
      std::vector<float> out(p.gradient.size(), 7);
      internal::roi_align_passes(p.options, p.shape, p.features.data(), p.regions.data(),
                                 p.kNumRegions, out.data(), InOrder(order));
      EXPECT_TRUE(out == expected) << p.shape.channels;
    }
  }
}

TEST(CudaDetectionPasses, RoiAlignBackwardHasTheBitsOfAProcessor) {
  for (const RoiProblem& p : roi_problems()) {
    std::vector<float> expected = p.features;  // is added to
    roi_align_backward(p.options, p.shape, p.gradient.data(), p.regions.data(), p.kNumRegions,
                       expected.data());
    for (const Order order : kOrders) {
      std::vector<float> ours = p.features;
      const internal::RoiSpace size(internal::Cutter(), p.kNumRegions);
      std::vector<std::byte> workspace(size.bytes, std::byte{0xFF});
      internal::roi_align_backward_passes(p.options, p.shape, p.gradient.data(), p.regions.data(),
                                          p.kNumRegions, ours.data(), workspace, InOrder(order));
      EXPECT_TRUE(ours == expected) << p.shape.channels;
    }
  }
}

TEST(CudaDetectionPasses, ARegionOnNoMapGivesNothing) {
  const FeatureShape shape{1, 4, 4, 1};
  const RoiAlignSettings options{.pooled_height = 1, .pooled_width = 1, .num_samples = 1};
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> regions = {1,     0,     0, 2, 2,         -1, 0,    0,      2,
                                      2,     0,     0, 0, kInfinity, 2,  0,    -3e38F, -3e38F,
                                      3e38F, 3e38F, 0, 0, 0,         1,  1e30F};
  std::vector<float> features(16, 1), gradient(5, 1), out(5, 7);
  internal::roi_align_passes(options, shape, features.data(), regions.data(), 4, out.data(),
                             InOrder());
  internal::roi_align_passes({.pooled_height = 1, .pooled_width = 1}, shape, features.data(),
                             regions.data() + 20, 1, out.data() + 4, InOrder());
  EXPECT_EQ(out, std::vector<float>(5));
  std::vector<std::byte> workspace(internal::RoiSpace(internal::Cutter(), 4).bytes);
  internal::roi_align_backward_passes(options, shape, gradient.data(), regions.data(), 4,
                                      features.data(), workspace, InOrder());
  EXPECT_EQ(features, std::vector<float>(16, 1));
}

TEST(CudaDetectionPasses, OptionsThatAreNoNumbersAreRefused) {
  float x = 0;
  std::vector<std::byte> workspace(1000);
  const RoiAlignSettings options{.scale = std::numeric_limits<double>::quiet_NaN()};
  EXPECT_THROW(internal::roi_align_passes(options, {}, &x, &x, 0, &x, InOrder()), Error);
  EXPECT_THROW(
      internal::roi_align_backward_passes(options, {}, &x, &x, 0, &x, workspace, InOrder()), Error);
  EXPECT_THROW(
      internal::fixed_nms_passes({}, std::numeric_limits<double>::quiet_NaN(), {}, {}, InOrder()),
      Error);
}

TEST(CudaDetectionPasses, ASmallWorkspaceIsRefused) {
  std::vector<std::byte> none;
  float x = 0;
  EXPECT_THROW(internal::fixed_nms_passes({&x, &x, nullptr, 1}, 0.5, {}, none, InOrder()), Error);
  EXPECT_THROW(internal::roi_align_backward_passes({}, {}, &x, &x, 1, &x, none, InOrder()), Error);
}

}  // namespace
}  // namespace trireme::vision::cuda
