// Box codes, matching and selections on a GPU: what the processors' kernels give; codes within 2
// ulps.

#include <gtest/gtest.h>

#include <vector>

#include "packs/vision/cuda/boxes.h"
#include "packs/vision/cuda/selection.h"
#include "tests/kernels/cuda/device_array.h"
#include "tests/packs/vision/cuda/matching_problem.h"

namespace trireme::vision::cuda {
namespace {

using namespace kernels;
using namespace kernels::cuda;

class CudaMatching : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = trireme::cuda::why_no_gpu()) GTEST_SKIP() << reason->message();
    stream = trireme::cuda::make_stream(0);
    handle = trireme::cuda::handle_of(*stream);
  }

  std::unique_ptr<Stream> stream;
  CUstream_st* handle = nullptr;
};

TEST_F(CudaMatching, CodesAreThoseOfAProcessor) {
  const CodeProblem p(3001);
  const DeviceArray<float> boxes(p.boxes, *stream), anchors(p.anchors, *stream);
  const DeviceArray<float> given(p.codes, *stream);
  const DeviceArray<float> codes(std::vector<float>(p.codes.size(), 7), *stream);
  const DeviceArray<float> decoded(std::vector<float>(p.codes.size(), 7), *stream);
  encode_boxes(p.coding, boxes.data(), anchors.data(), 3001, codes.data(), handle);
  decode_boxes(p.coding, given.data(), anchors.data(), 3001, decoded.data(), handle);
  const auto expect_close = [](const std::vector<float>& a, const std::vector<float>& b) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      // Sizes reach 90, codes 25: 2 ulps of them.
      ASSERT_NEAR(a[i], b[i], 2e-5) << i;
    }
  };
  expect_close(codes.values(), p.codes);
  expect_close(decoded.values(), p.decoded);
}

TEST_F(CudaMatching, MatchesAreThoseOfAProcessor) {
  for (const auto& [num_truth, num_anchors] : MatchProblem::kSizes) {
    const MatchProblem p(num_truth, num_anchors);
    const DeviceArray<float> truth(p.truth.boxes, *stream), anchors(p.anchors.boxes, *stream);
    const DeviceArray<float> values(std::vector<float>(p.values.size(), 7), *stream);
    const DeviceArray<std::int64_t> matches(std::vector<std::int64_t>(num_anchors, -7), *stream);
    const DeviceOverlaps overlaps{values.data(), num_truth, num_anchors};
    const trireme::cuda::DeviceMemory workspace(0, match_workspace_bytes(overlaps));
    box_overlaps(truth.data(), num_truth, anchors.data(), num_anchors, values.data(), handle);
    EXPECT_EQ(values.values(), p.values);
    match_anchors({.low = 0.25F}, overlaps, matches.data(), workspace.bytes(), handle);
    EXPECT_EQ(matches.values(), p.matched({.low = 0.25F})) << num_truth << " x " << num_anchors;
    match_ssd(0.25F, overlaps, matches.data(), workspace.bytes(), handle);
    EXPECT_EQ(matches.values(), p.matched_as_ssd(0.25F)) << num_truth << " x " << num_anchors;
  }
}

TEST_F(CudaMatching, SelectionsAreThoseOfAProcessor) {
  for (const std::int64_t n : {0, 1, 256, 257, 8732}) {
    const SelectionProblem p(n);
    std::vector<std::uint8_t> chosen(n);
    std::vector<std::int64_t> expected(100);
    const std::vector<std::int64_t> counts = {
        vision::mine_hard_negatives(p.losses, p.is_matched, 3, chosen),
        vision::fixed_nonzero(p.is_matched, expected)};
    const DeviceArray<float> losses(p.losses, *stream);
    const DeviceArray<std::uint8_t> matched(p.is_matched, *stream);
    const DeviceArray<std::uint8_t> ours(std::vector<std::uint8_t>(n, 7), *stream);
    const DeviceArray<std::int64_t> places(std::vector<std::int64_t>(100, -7), *stream);
    const DeviceArray<std::int64_t> our_counts({-7, -7}, *stream);
    const trireme::cuda::DeviceMemory workspace(0, selection_workspace_bytes(n));
    mine_hard_negatives(losses.data(), matched.data(), n, 3, ours.data(), our_counts.data(),
                        workspace.bytes(), handle);
    fixed_nonzero(matched.data(), n, places.data(), 100, our_counts.data() + 1, workspace.bytes(),
                  handle);
    EXPECT_EQ(ours.values(), chosen) << n;
    EXPECT_EQ(places.values(), expected) << n;
    EXPECT_EQ(our_counts.values(), counts) << n;
  }
}

TEST_F(CudaMatching, PermutationsAreThoseOfAProcessor) {
  for (const std::int64_t n : {0, 1, 2, 2048, 2049, 100'000}) {
    std::vector<std::int64_t> expected(n);
    vision::random_permutation(7, expected);
    const DeviceArray<std::int64_t> ours(std::vector<std::int64_t>(n, -7), *stream);
    const trireme::cuda::DeviceMemory workspace(0, permutation_workspace_bytes(n));
    random_permutation(7, ours.data(), n, workspace.bytes(), handle);
    EXPECT_EQ(ours.values(), expected) << n;
  }
}

}  // namespace
}  // namespace trireme::vision::cuda
