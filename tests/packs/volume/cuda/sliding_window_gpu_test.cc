// Sliding windows on a GPU: the bits of the processors' kernels.

#include <gtest/gtest.h>

#include <vector>

#include "packs/volume/cuda/sliding_window.h"
#include "tests/kernels/cuda/device_array.h"
#include "tests/packs/volume/cuda/sliding_window_problem.h"

namespace trireme::volume::cuda {
namespace {

using namespace kernels;
using namespace kernels::cuda;

TEST(CudaWindows, PredictionsHaveTheBitsOfAProcessor) {
  if (const auto reason = trireme::cuda::why_no_gpu()) GTEST_SKIP() << reason->message();
  const auto stream = trireme::cuda::make_stream(0);
  CUstream_st* const handle = trireme::cuda::handle_of(*stream);
  for (const std::int64_t width : WindowProblem::kWidths) {
    const WindowProblem p(width);
    const DeviceArray<float> factors(p.weights.factors(), *stream), logits(p.logits, *stream);
    const DeviceArray<float> sum(std::vector<float>(p.sum.size()), *stream);
    const DeviceArray<float> norm(std::vector<float>(p.norm.size()), *stream);
    const DeviceArray<std::uint8_t> labels(std::vector<std::uint8_t>(p.labels.size(), 7), *stream);
    for (std::size_t w = 0; w < p.windows.size(); ++w) {
      accumulate_window({p.weights.patch(), factors.data(), p.weights.smallest()}, p.volume,
                        p.windows[w], p.num_classes, logits.data() + w * p.window_logits(),
                        sum.data(), norm.data(), handle);
    }
    EXPECT_EQ(sum.values(), p.sum) << width;
    EXPECT_EQ(norm.values(), p.norm) << width;
    argmax_classes(p.volume, p.num_classes, sum.data(), labels.data(), handle);
    EXPECT_EQ(labels.values(), p.labels) << width;
    average_windows(p.volume, p.num_classes, norm.data(), sum.data(), handle);
    EXPECT_EQ(sum.values(), p.means) << width;
  }
}

}  // namespace
}  // namespace trireme::volume::cuda
