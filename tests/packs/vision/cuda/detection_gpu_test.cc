// Detection's kernels on a GPU: what the processors' kernels give, to the bit.

#include <gtest/gtest.h>

#include <vector>

#include "packs/vision/cuda/nms.h"
#include "packs/vision/cuda/roi_align.h"
#include "packs/vision/kernels/nms.h"
#include "tests/kernels/cuda/device_array.h"
#include "tests/packs/vision/cuda/detection_problem.h"

namespace trireme::vision::cuda {
namespace {

using namespace kernels;
using namespace kernels::cuda;

class CudaDetection : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = trireme::cuda::why_no_gpu()) GTEST_SKIP() << reason->message();
    stream = trireme::cuda::make_stream(0);
    handle = trireme::cuda::handle_of(*stream);
  }

  /// The indices, and the count behind them.
  std::vector<std::int64_t> kept_by_gpu(const BoxProblem& p, std::int64_t n, double threshold,
                                        std::int64_t capacity) {
    const DeviceArray<float> boxes(p.boxes, *stream), scores(p.scores, *stream);
    const DeviceArray<std::int64_t> classes(p.classes, *stream);
    const DeviceArray<std::int64_t> kept(std::vector<std::int64_t>(capacity + 1, -7), *stream);
    const trireme::cuda::DeviceMemory workspace(0, fixed_nms_workspace_bytes(n));
    fixed_nms({boxes.data(), scores.data(), classes.data(), n}, threshold,
              {kept.data(), kept.data() + capacity, capacity}, workspace.bytes(), handle);
    return kept.values();
  }

  std::unique_ptr<Stream> stream;
  CUstream_st* handle = nullptr;
};

TEST_F(CudaDetection, NmsKeepsWhatAProcessorKeeps) {
  for (const std::int64_t n : {0, 1, 64, 65, 500, 3001}) {
    const BoxProblem p(n);
    for (const double threshold : {0.0, 0.25, 1.0}) {
      for (const std::int64_t capacity : {0, 1, 300}) {
        std::vector<std::int64_t> expected(capacity + 1);
        expected[capacity] = vision::fixed_nms(p.boxes, p.scores, p.classes, threshold,
                                               std::span(expected).first(capacity));
        EXPECT_EQ(kept_by_gpu(p, n, threshold, capacity), expected)
            << n << " boxes, threshold " << threshold;
      }
    }
  }
}

TEST_F(CudaDetection, RoiAlignHasTheBitsOfAProcessor) {
  for (const RoiProblem& p : roi_problems()) {
    std::vector<float> out(p.gradient.size()), features = p.features;
    vision::roi_align(p.options, p.shape, p.features.data(), p.regions.data(), p.kNumRegions,
                      out.data());
    vision::roi_align_backward(p.options, p.shape, p.gradient.data(), p.regions.data(),
                               p.kNumRegions, features.data());
    const DeviceArray<float> our_features(p.features, *stream), gradient(p.gradient, *stream);
    const DeviceArray<float> regions(p.regions, *stream);
    const DeviceArray<float> our_out(std::vector<float>(out.size(), 7), *stream);
    const trireme::cuda::DeviceMemory workspace(0, roi_align_workspace_bytes(p.kNumRegions));
    roi_align(p.options, p.shape, our_features.data(), regions.data(), p.kNumRegions,
              our_out.data(), handle);
    roi_align_backward(p.options, p.shape, gradient.data(), regions.data(), p.kNumRegions,
                       our_features.data(), workspace.bytes(), handle);
    EXPECT_EQ(our_out.values(), out) << p.shape.channels;
    EXPECT_EQ(our_features.values(), features) << p.shape.channels;
  }
}

}  // namespace
}  // namespace trireme::vision::cuda
