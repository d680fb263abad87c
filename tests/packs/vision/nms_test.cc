#include "packs/vision/kernels/nms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/packs/vision/reference/detection.h"
#include "trireme/error.h"
#include "trireme/kernels/isa.h"

namespace trireme::vision {
namespace {

using namespace kernels;

struct Candidates {
  std::vector<float> boxes, scores;
  std::vector<std::int64_t> classes;
};

/// Boxes on a grid, so that overlaps hit thresholds exactly; scores of few values, so that they
/// tie.
Candidates random_candidates(std::int64_t n, unsigned seed, int size = 40) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> place(0, 100), extent(0, size), score(0, 50), kind(0, 3);
  Candidates all;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto x = static_cast<float>(place(random)), y = static_cast<float>(place(random));
    all.boxes.insert(all.boxes.end(), {x, y, x + static_cast<float>(extent(random)),
                                       y + static_cast<float>(extent(random))});
    all.scores.push_back(static_cast<float>(score(random)) / 50);
    all.classes.push_back(kind(random) * 1000 - 1);
  }
  return all;
}

TEST(NmsTest, IsTheReferenceOnEveryInstructionSet) {
  for (const Isa isa : {Isa::kPortable, Isa::kAvx2, Isa::kAvx512}) {
    const kernels::IsaLimit limit(isa);
    for (const std::int64_t n : {0, 1, 2, 15, 16, 17, 33, 500}) {
      for (const double threshold : {0.0, 1.0 / 3, 0.5, 0.7, 1.0}) {
        const Candidates all = random_candidates(n, static_cast<unsigned>(n));
        EXPECT_EQ(nms(all.boxes, all.scores, {.threshold = threshold}),
                  reference::nms(all.boxes, all.scores, threshold))
            << n << " boxes, " << to_string(isa);
      }
    }
  }
}

TEST(NmsTest, StopsAtTheMost) {
  const Candidates all = random_candidates(300, 1);
  std::vector<std::int64_t> expected = reference::nms(all.boxes, all.scores, 0.5);
  ASSERT_GT(expected.size(), 70U);
  expected.resize(70);
  EXPECT_EQ(nms(all.boxes, all.scores, {.max_kept = 70}), expected);
  EXPECT_TRUE(nms(all.boxes, all.scores, {.max_kept = 0}).empty());
}

TEST(NmsTest, ClassesDoNotSuppressEachOther) {
  for (const std::int64_t n : {0, 1, 17, 400}) {
    const Candidates all = random_candidates(n, 2);
    EXPECT_EQ(batched_nms(all.boxes, all.scores, all.classes),
              reference::batched_nms(all.boxes, all.scores, all.classes, 0.5));
  }
}

TEST(NmsTest, AFixedNumberOfPlacesIsFilled) {
  const Candidates all = random_candidates(100, 3);
  const std::vector<std::int64_t> kept = batched_nms(all.boxes, all.scores, all.classes);
  std::vector<std::int64_t> places(kept.size() + 5, -7);
  EXPECT_EQ(fixed_nms(all.boxes, all.scores, all.classes, 0.5, places), std::ssize(kept));
  EXPECT_TRUE(std::equal(kept.begin(), kept.end(), places.begin()));
  EXPECT_THAT(std::vector(places.begin() + std::ssize(kept), places.end()), testing::Each(0));
  places.assign(3, -7);
  EXPECT_EQ(fixed_nms(all.boxes, all.scores, all.classes, 0.5, places), 3);
  EXPECT_TRUE(std::equal(places.begin(), places.end(), kept.begin()));
}

TEST(NmsTest, RefusesWhatIsNoBox) {
  const auto message_of = [](std::vector<float> boxes, std::vector<float> scores) {
    try {
      nms(boxes, scores);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
      return error.message();
    }
    return std::string("no error");
  };
  const float nan = std::nanf("");
  EXPECT_THAT(message_of({0, 0, 1, 1, 0, nan, 1, 1}, {1, 1}), testing::HasSubstr("box 1"));
  EXPECT_THAT(message_of({0, 0, 1, 1}, {nan}), testing::HasSubstr("score nan"));
  EXPECT_THAT(message_of({2, 0, 1, 1}, {1}), testing::HasSubstr("box 0"));
  EXPECT_THAT(message_of({0, 0, 1}, {1}), testing::HasSubstr("4 coordinates"));
}

TEST(NmsTest, RefusesAThresholdThatIsNan) {
  const Candidates all = random_candidates(5, 4);
  const double nan = std::nan("");
  std::vector<std::int64_t> places(5);
  EXPECT_THROW(nms(all.boxes, all.scores, {.threshold = nan}), Error);
  EXPECT_THROW(batched_nms(all.boxes, all.scores, all.classes, {.threshold = nan}), Error);
  EXPECT_THROW(fixed_nms(all.boxes, all.scores, all.classes, nan, places), Error);
}

}  // namespace
}  // namespace trireme::vision
