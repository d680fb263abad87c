#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "packs/vision/kernels/boxes.h"
#include "packs/vision/kernels/matching.h"
#include "tests/packs/vision/reference/boxes.h"
#include "tests/packs/vision/reference/matching.h"
#include "trireme/error.h"
#include "trireme/kernels/isa.h"

namespace trireme::vision {
namespace {

using namespace kernels;

using testing::ElementsAre;
using testing::HasSubstr;

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.message();
  }
  return "no error";
}

TEST(BoxesTest, OverlapsAreSharesOfTheUnion) {
  const std::vector<float> a = {0, 0, 2, 2};
  const std::vector<float> b = {1, 1, 3, 3, 0, 0, 2, 2, 5, 5, 6, 6, 2, 0, 4, 2, 1, 1, 1, 1};
  for (const Isa isa : {Isa::kPortable, Isa::kAvx2, Isa::kAvx512}) {
    const kernels::IsaLimit limit(isa);
    std::vector<float> overlaps(5);
    box_overlaps(a.data(), 1, b.data(), 5, overlaps.data());
    EXPECT_THAT(overlaps, ElementsAre(1.0F / 7, 1, 0, 0, 0));
    float empty = 7;
    box_overlaps(b.data() + 16, 1, b.data() + 16, 1, &empty);
    EXPECT_EQ(empty, 0);
  }
}

/// On a grid of quarters, so that differences and areas are exact; many are equal, some are empty
/// where `least_side` is 0.
std::vector<float> boxes_on_a_grid(std::int64_t n, unsigned seed, int least_side = 0) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> place(0, 40), side(least_side, 20);
  std::vector<float> boxes;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto x = static_cast<float>(place(random)) / 4, y = static_cast<float>(place(random)) / 4;
    boxes.insert(boxes.end(), {x, y, x + static_cast<float>(side(random)) / 4,
                               y + static_cast<float>(side(random)) / 4});
  }
  return boxes;
}

TEST(BoxesTest, OverlapsAreThoseOfTheReference) {
  using Sizes = std::pair<std::int64_t, std::int64_t>;
  for (const auto& [num_a, num_b] : {Sizes{0, 0},
                                     {0, 5},
                                     {5, 0},
                                     {1, 1},
                                     {3, 7},
                                     {7, 15},
                                     {2, 16},
                                     {5, 17},
                                     {40, 33},
                                     {2, 16'385}}) {
    const std::vector<float> a = boxes_on_a_grid(num_a, 1), b = boxes_on_a_grid(num_b, 2);
    const std::vector<float> expected = reference::box_overlaps(a, b);
    for (const Isa isa : {Isa::kPortable, Isa::kAvx2, Isa::kAvx512}) {
      const kernels::IsaLimit limit(isa);
      std::vector<float> overlaps(num_a * num_b, -7);
      box_overlaps(a.data(), num_a, b.data(), num_b, overlaps.data());
      EXPECT_EQ(overlaps, expected) << num_a << " x " << num_b << ", " << to_string(isa);
    }
  }
}

/// Of values that come in fours: differences beside the largest of each four.
void expect_near_in_fours(const std::vector<float>& ours, const std::vector<double>& exact) {
  ASSERT_EQ(ours.size(), exact.size());
  for (std::size_t i = 0; i < exact.size(); ++i) {
    double size = 1;
    for (std::size_t k = i / 4 * 4; k < i / 4 * 4 + 4; ++k)
      size = std::max(size, std::abs(exact[k]));
    EXPECT_NEAR(ours[i], exact[i], 2e-6 * size) << i;
  }
}

TEST(BoxesTest, CodesAreThoseOfTheReference) {
  for (const BoxCoding& coding :
       {BoxCoding{}, BoxCoding{.weights = {10, 20, 5, 4}, .largest_log = 0.5F}}) {
    for (const std::int64_t n : {0, 1, 3, 16, 17, 8193}) {
      const std::vector<float> boxes = boxes_on_a_grid(n, 3, 1), anchors = boxes_on_a_grid(n, 4, 1);
      std::vector<float> codes(4 * n), decoded(4 * n);
      encode_boxes(coding, boxes.data(), anchors.data(), n, codes.data());
      expect_near_in_fours(codes, reference::encode_boxes(coding, boxes, anchors));
      decode_boxes(coding, codes.data(), anchors.data(), n, decoded.data());
      expect_near_in_fours(decoded, reference::decode_boxes(coding, codes, anchors));
    }
  }
}

TEST(BoxesTest, DecodingUndoesCoding) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> place(0, 100), extent(1, 50);
  std::vector<float> boxes, anchors;
  for (auto* list : {&boxes, &anchors}) {
    for (int i = 0; i < 100; ++i) {
      const float x = place(random), y = place(random);
      list->insert(list->end(), {x, y, x + extent(random), y + extent(random)});
    }
  }
  const BoxCoding coding{.weights = {10, 10, 5, 5}};
  std::vector<float> codes(400), decoded(400);
  encode_boxes(coding, boxes.data(), anchors.data(), 100, codes.data());
  decode_boxes(coding, codes.data(), anchors.data(), 100, decoded.data());
  for (int i = 0; i < 400; ++i) EXPECT_NEAR(decoded[i], boxes[i], 1e-4);
}

TEST(BoxesTest, OverlapsOfWhatIsNotFiniteAreRefused) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> good = {0, 0, 1, 1, 0, 0, 1, 1};
  for (const std::array<float, 4>& bad :
       {std::array<float, 4>{0, std::nanf(""), 1, 1}, std::array<float, 4>{0, 0, inf, 1},
        std::array<float, 4>{inf, 0, inf, 0}, std::array<float, 4>{0, -inf, 0, 0},
        std::array<float, 4>{-1e30F, -1e30F, 1e30F, 1e30F}}) {
    std::vector<float> boxes = good, overlaps(4);
    std::ranges::copy(bad, boxes.begin() + 4);
    const auto overlap = [&](const auto& a, const auto& b) {
      return message_of([&] { box_overlaps(a.data(), 2, b.data(), 2, overlaps.data()); });
    };
    EXPECT_THAT(overlap(boxes, good), HasSubstr("a: box 1 must have finite"));
    EXPECT_THAT(overlap(good, boxes), HasSubstr("b: box 1 must have finite"));
  }
}

TEST(BoxesTest, ABoxWithoutAreaHasNoCode) {
  const std::vector<float> good = {0, 0, 1, 1, 0, 0, 1, 1}, bad = {0, 0, 1, 1, 2, 0, 2, 1};
  std::vector<float> codes(8, -7);
  const auto encode = [&](const auto& boxes, const auto& anchors) {
    return message_of([&] { encode_boxes({}, boxes.data(), anchors.data(), 2, codes.data()); });
  };
  EXPECT_THAT(encode(bad, good), HasSubstr("box 1"));
  EXPECT_THAT(encode(good, bad), HasSubstr("anchor 1"));
  EXPECT_THAT(codes, testing::Each(-7));  // nothing was written
}

TEST(BoxesTest, WhatHasNoBoxIsNotDecoded) {
  const std::vector<float> anchors = {0, 0, 1, 1, 0, 0, 1, 1}, empty = {0, 0, 1, 1, 2, 0, 2, 1};
  const std::vector<float> codes(8), bad = {0, 0, 0, 0, 0, 0, std::nanf(""), 0};
  std::vector<float> boxes(8, -7);
  const auto decode = [&](const auto& of, const auto& at) {
    return message_of([&] { decode_boxes({}, of.data(), at.data(), 2, boxes.data()); });
  };
  EXPECT_THAT(decode(bad, anchors), HasSubstr("code 1 must be finite"));
  EXPECT_THAT(decode(codes, empty), HasSubstr("anchor 1 must have an area"));
  EXPECT_THAT(boxes, testing::Each(-7));
}

TEST(MatchingTest, AnchorsAreMatchedBetweenOrBackground) {
  //                                   anchors  0     1     2     3     4
  const std::vector<float> overlaps = {/* 0 */ 0.9F, 0.4F, 0.1F, 0.0F, 0.2F,
                                       /* 1 */ 0.0F, 0.3F, 0.2F, 0.0F, 0.2F};
  std::vector<std::int64_t> matches(5);
  match_anchors({.high = 0.7F, .low = 0.3F, .keeps_best = false}, overlaps, 2, matches);
  EXPECT_THAT(matches, ElementsAre(0, kBetween, kBackground, kBackground, kBackground));
  match_anchors({.high = 0.7F, .low = 0.3F}, overlaps, 2, matches);
  // Box 1's best anchor is 1, which itself overlaps with box 0 most.
  EXPECT_THAT(matches, ElementsAre(0, 0, kBackground, kBackground, kBackground));
  match_ssd(0.5F, overlaps, 2, matches);
  EXPECT_THAT(matches, ElementsAre(0, 1, kBackground, kBackground, kBackground));
}

/// Overlaps of few values, so that rows and columns tie and thresholds are hit; some rows are 0.
TEST(MatchingTest, MatchesAreThoseOfTheReference) {
  std::mt19937 random(5);
  for (const std::int64_t num_truth : {0, 1, 2, 7, 33}) {
    for (const std::int64_t num_anchors : {0, 1, 15, 16, 17, 300, 4097}) {
      std::vector<float> overlaps(num_truth * num_anchors);
      for (std::int64_t i = 0; i < std::ssize(overlaps); ++i) {
        const bool is_apart = i / num_anchors % 4 == 3;
        overlaps[i] = is_apart ? 0 : static_cast<float>(random() % 9) / 8;
      }
      const reference::Overlaps all{overlaps, num_truth, num_anchors};
      std::vector<std::int64_t> matches(num_anchors, -7);
      for (const float low : {0.0F, 0.25F, 0.75F}) {
        for (const bool keeps_best : {false, true}) {
          const MatchOptions options{.high = 0.75F, .low = low, .keeps_best = keeps_best};
          match_anchors(options, overlaps, num_truth, matches);
          EXPECT_EQ(matches, reference::match_anchors(options, all))
              << num_truth << " x " << num_anchors << ", " << low << ", " << keeps_best;
        }
        match_ssd(low, overlaps, num_truth, matches);
        EXPECT_EQ(matches, reference::match_ssd(low, all)) << num_truth << " x " << num_anchors;
      }
    }
  }
}

TEST(MatchingTest, WithoutBoxesAllIsBackground) {
  std::vector<std::int64_t> matches(3, 5);
  match_anchors({}, {}, 0, matches);
  EXPECT_THAT(matches, testing::Each(kBackground));
  match_ssd(0.5F, {}, 0, matches);
  EXPECT_THAT(matches, testing::Each(kBackground));
}

TEST(MatchingTest, RefusesWhatCannotBeCompared) {
  std::vector<std::int64_t> matches(2);
  const std::vector<float> overlaps = {0.5F, 0.5F, 0.5F, std::nanf("")};
  const auto match = [&](const MatchOptions& options, std::int64_t num_truth) {
    return message_of([&] { match_anchors(options, overlaps, num_truth, matches); });
  };
  EXPECT_THAT(match({}, 2), HasSubstr("box 1 with anchor 1 is NaN"));
  EXPECT_THAT(match({}, 3), HasSubstr("3 x 2"));
  EXPECT_THAT(match({.high = 0.1F, .low = 0.2F}, 2), HasSubstr("low <= high"));
}

}  // namespace
}  // namespace trireme::vision
