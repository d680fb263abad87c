#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "trireme/base/error.h"
#include "trireme/kernels/detection/boxes.h"
#include "trireme/kernels/detection/matching.h"
#include "trireme/kernels/isa.h"

namespace trireme::kernels {
namespace {

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
    const IsaLimit limit(isa);
    std::vector<float> overlaps(5);
    box_overlaps(a.data(), 1, b.data(), 5, overlaps.data());
    EXPECT_THAT(overlaps, ElementsAre(1.0F / 7, 1, 0, 0, 0));
    float empty = 7;
    box_overlaps(b.data() + 16, 1, b.data() + 16, 1, &empty);
    EXPECT_EQ(empty, 0);
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
}  // namespace trireme::kernels
