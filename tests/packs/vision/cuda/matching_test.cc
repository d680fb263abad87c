// The passes of GPUs' box codes, matching and selections, run on the host: what the processors'
// kernels give.

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "packs/vision/cuda/boxes_passes.h"
#include "packs/vision/cuda/matching_passes.h"
#include "packs/vision/cuda/selection_passes.h"
#include "tests/kernels/cuda/orders.h"
#include "tests/packs/vision/cuda/matching_problem.h"
#include "trireme/error.h"

namespace trireme::vision::cuda {
namespace {

using namespace kernels;
using namespace kernels::cuda;

using Matches = std::vector<std::int64_t>;

std::vector<std::byte> workspace_for(const MatchProblem& p) {
  return std::vector<std::byte>(internal::MatchSpace(internal::Cutter(), p.overlaps()).bytes,
                                std::byte{0xFF});
}

TEST(CudaMatchingPasses, CodesAreThoseOfAProcessor) {
  const CodeProblem p(301);
  for (const Order order : kOrders) {
    std::vector<float> codes(p.codes.size()), boxes(p.decoded.size());
    internal::encode_boxes_passes(p.coding, p.boxes.data(), p.anchors.data(), 301, codes.data(),
                                  InOrder(order));
    internal::decode_boxes_passes(p.coding, p.codes.data(), p.anchors.data(), 301, boxes.data(),
                                  InOrder(order));
    EXPECT_EQ(codes, p.codes);
    EXPECT_EQ(boxes, p.decoded);
  }
}

TEST(CudaMatchingPasses, MatchesAreThoseOfAProcessor) {
  for (const auto& [num_truth, num_anchors] : MatchProblem::kSizes) {
    const MatchProblem p(num_truth, num_anchors);
    for (const Order order : kOrders) {
      std::vector<float> overlaps(p.values.size(), 7);
      internal::box_overlaps_passes(p.truth.boxes.data(), num_truth, p.anchors.boxes.data(),
                                    num_anchors, overlaps.data(), InOrder(order));
      EXPECT_EQ(overlaps, p.values);
      for (const bool keeps_best : {false, true}) {
        const MatchOptions options{.high = 0.5F, .low = 0.25F, .keeps_best = keeps_best};
        Matches ours(num_anchors, -7);
        std::vector<std::byte> workspace = workspace_for(p);
        internal::match_anchors_passes(options, p.overlaps(), ours.data(), workspace,
                                       InOrder(order));
        EXPECT_EQ(ours, p.matched(options)) << num_truth << " x " << num_anchors;
      }
      Matches ours(num_anchors, -7);
      std::vector<std::byte> workspace = workspace_for(p);
      internal::match_ssd_passes(0.25F, p.overlaps(), ours.data(), workspace, InOrder(order));
      EXPECT_EQ(ours, p.matched_as_ssd(0.25F)) << num_truth << " x " << num_anchors;
    }
  }
}

TEST(CudaMatchingPasses, AnOverlapThatIsNanMatchesNothing) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> values = {kNan, 0.75F, kNan, kNan};
  const DeviceOverlaps overlaps{values.data(), 2, 2};
  std::vector<std::byte> workspace(internal::MatchSpace(internal::Cutter(), overlaps).bytes);
  Matches ours(2, -7);
  internal::match_ssd_passes(0.5F, overlaps, ours.data(), workspace, InOrder());
  EXPECT_EQ(ours, (Matches{kBackground, 0}));
}

TEST(CudaSelectionPasses, HardNegativesAreThoseOfAProcessor) {
  for (const std::int64_t n : {0, 1, 2, 255, 256, 257, 1000}) {
    const SelectionProblem p(n);
    for (const double ratio : {0.0, 1.5, 3.0, std::numeric_limits<double>::infinity()}) {
      std::vector<std::uint8_t> expected(n);
      const std::int64_t count =
          vision::mine_hard_negatives(p.losses, p.is_matched, ratio, expected);
      for (const Order order : kOrders) {
        std::vector<std::uint8_t> ours(n, 7);
        std::int64_t our_count = -7;
        std::vector<std::byte> workspace(internal::PrefixSpace(internal::Cutter(), n).bytes);
        internal::mine_hard_negatives_passes(p.losses.data(), p.is_matched.data(), n, ratio,
                                             ours.data(), &our_count, workspace, InOrder(order));
        EXPECT_EQ(our_count, count) << n << " times " << ratio;
        EXPECT_EQ(ours, expected) << n << " times " << ratio;
      }
    }
  }
}

TEST(CudaSelectionPasses, PlacesAreThoseOfAProcessor) {
  for (const std::int64_t n : {0, 1, 255, 256, 257, 1000}) {
    const SelectionProblem p(n);
    for (const std::int64_t num_places : {0, 1, 10, 2000}) {
      Matches expected(num_places);
      const std::int64_t count = vision::fixed_nonzero(p.is_matched, expected);
      for (const Order order : kOrders) {
        Matches ours(num_places, -7);
        std::int64_t our_count = -7;
        std::vector<std::byte> workspace(internal::PrefixSpace(internal::Cutter(), n).bytes);
        internal::fixed_nonzero_passes(p.is_matched.data(), n, ours.data(), num_places, &our_count,
                                       workspace, InOrder(order));
        EXPECT_EQ(our_count, count);
        EXPECT_EQ(ours, expected) << n << " values, " << num_places << " places";
      }
    }
  }
}

TEST(CudaSelectionPasses, PermutationsAreThoseOfAProcessor) {
  for (const std::int64_t n : {0, 1, 2, 3, 8, 1000, 2048, 2049, 5000}) {
    Matches expected(n);
    vision::random_permutation(0x123456789ABCDEF0 + n, expected);
    for (const Order order : kOrders) {
      Matches ours(n, -7);
      std::vector<std::byte> workspace(internal::PermutationSpace(internal::Cutter(), n).bytes,
                                       std::byte{0xFF});
      internal::random_permutation_passes(0x123456789ABCDEF0 + n, ours.data(), n, workspace,
                                          InOrder(order));
      EXPECT_EQ(ours, expected) << n;
    }
  }
}

TEST(CudaSelectionPasses, EqualNumbersSortByIndex) {
  constexpr std::int64_t kPlaces = 8192;
  std::vector<std::byte> workspace(16 * kPlaces);
  const internal::PermutationSpace space(internal::Cutter(workspace), kPlaces);
  std::vector<std::pair<std::uint64_t, std::int64_t>> expected, ours;
  for (std::int64_t i = 0; i < kPlaces; ++i) {
    const std::int64_t index = i * 4099 % kPlaces;
    expected.emplace_back(index % 3 == 0 ? ~std::uint64_t{0} : index % 3, index);
    std::tie(space.numbers[i], space.indices[i]) = expected.back();
  }
  std::ranges::sort(expected);
  internal::sort_pairs_passes(space, InOrder(Order::kScattered));
  for (std::int64_t i = 0; i < kPlaces; ++i) ours.emplace_back(space.numbers[i], space.indices[i]);
  EXPECT_EQ(ours, expected);
}

TEST(CudaSelectionPasses, BadNumbersAndSmallWorkspacesAreRefused) {
  std::vector<std::byte> none;
  std::int64_t x = 0;
  const auto mine = [&](double ratio, std::int64_t n) {
    internal::mine_hard_negatives_passes(nullptr, nullptr, n, ratio, nullptr, &x, none, InOrder());
  };
  EXPECT_THROW(mine(-1, 0), Error);
  EXPECT_THROW(mine(3, 300), Error);
  EXPECT_THROW(internal::random_permutation_passes(1, &x, 1, none, InOrder()), Error);
  EXPECT_THROW(internal::fixed_nonzero_passes(nullptr, 300, &x, 1, &x, none, InOrder()), Error);
  EXPECT_THROW(internal::match_anchors_passes({.high = 0.1F, .low = 0.2F}, {}, &x, none, InOrder()),
               Error);
  EXPECT_THROW(internal::match_ssd_passes(0.5F, {nullptr, 1, 1}, &x, none, InOrder()), Error);
}

}  // namespace
}  // namespace trireme::vision::cuda
