#include "packs/vision/kernels/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "packs/vision/kernels/permutation.h"
#include "tests/base/error_of.h"
#include "tests/packs/vision/reference/detection.h"
#include "trireme/kernels/isa.h"

namespace trireme::vision {
namespace {

using namespace kernels;

using testing::ElementsAre;
using testing::HasSubstr;

std::string refusal_of(const std::function<void()>& call) {
  const Error error = test::error_of(call);
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  return error.message();
}

TEST(SelectionTest, HardNegativesHaveTheLargestLosses) {
  const std::vector<float> losses = {5, 1, 9, 9, 9, 0, 2};
  const std::vector<std::uint8_t> is_matched = {0, 1, 0, 0, 0, 0, 0};
  std::vector<std::uint8_t> is_chosen(7);
  EXPECT_EQ(mine_hard_negatives(losses, is_matched, 2, is_chosen), 3);
  EXPECT_THAT(is_chosen, ElementsAre(0, 1, 1, 1, 0, 0, 0));
  EXPECT_EQ(mine_hard_negatives(losses, is_matched, 100, is_chosen), 7);
  EXPECT_EQ(mine_hard_negatives(losses, std::vector<std::uint8_t>(7), 3, is_chosen), 0);
  EXPECT_THAT(refusal_of([&] {
                mine_hard_negatives(std::vector<float>{0, std::nanf("")},
                                    std::vector<std::uint8_t>(2), 3, std::span(is_chosen).first(2));
              }),
              HasSubstr("anchor 1"));
}

TEST(SelectionTest, ARatioOfInfinityTakesAllNegatives) {
  const std::vector<float> losses = {5, 1, 9};
  std::vector<std::uint8_t> is_chosen(3);
  const auto choose = [&](double ratio, const std::vector<std::uint8_t>& is_matched) {
    return mine_hard_negatives(losses, is_matched, ratio, is_chosen);
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double ratio : {1e300, kInfinity}) EXPECT_EQ(choose(ratio, {0, 1, 0}), 3);
  EXPECT_EQ(choose(1e300, {0, 0, 0}), 0);
  EXPECT_EQ(choose(kInfinity, {0, 0, 0}), 3);
  for (const double ratio : {std::nan(""), -0.5, -kInfinity}) {
    EXPECT_THAT(refusal_of([&] { choose(ratio, {0, 1, 0}); }), HasSubstr("ratio")) << ratio;
  }
}

TEST(SelectionTest, FixedPlacesAreFilledUp) {
  const std::vector<std::uint8_t> values = {0, 3, 0, 1, 1};
  std::vector<std::int64_t> places(5);
  EXPECT_EQ(fixed_nonzero(values, places), 3);
  EXPECT_THAT(places, ElementsAre(1, 3, 4, 1, 3));
  EXPECT_EQ(fixed_nonzero(values, std::span(places).first(2)), 2);
  EXPECT_EQ(fixed_nonzero({}, places), 0);
  EXPECT_THAT(places, testing::Each(0));
}

TEST(SelectionTest, APermutationDependsOnItsSeedAlone) {
  for (const std::int64_t n : {0, 1, 2, 7, 1000}) {
    std::vector<std::int64_t> one(n), two(n), sorted(n);
    random_permutation(5, one);
    random_permutation(5, two);
    EXPECT_EQ(one, two);
    std::iota(sorted.begin(), sorted.end(), 0);
    EXPECT_TRUE(std::ranges::is_permutation(one, sorted));
    if (n < 1000) continue;
    random_permutation(6, two);
    EXPECT_NE(one, two);
    std::int64_t num_fixed = 0;
    for (std::int64_t i = 0; i < n; ++i) num_fixed += one[i] == i ? 1 : 0;
    EXPECT_LT(num_fixed, 8);  // 1 expected
  }
}

TEST(SelectionTest, HardNegativesAreThoseOfTheReference) {
  std::mt19937 random(1);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const std::int64_t n : {1, 31, 32, 33, 1000, 5000}) {
    for (const int num_values : {2, 50, 1'000'000}) {  // few: many are equal
      std::vector<float> losses(n);
      for (float& loss : losses) {
        const int middle = num_values / 2;
        loss = static_cast<float>(static_cast<int>(random() % num_values) - middle);
        if (random() % 100 == 0) loss = random() % 2 == 0 ? kInfinity : -kInfinity;
        if (loss == 0 && random() % 2 == 0) loss = -0.0F;
      }
      std::vector<std::uint8_t> is_matched(n), is_chosen(n);
      for (auto& matched : is_matched) matched = random() % 20 == 0 ? 1 : 0;
      const auto num_matched = std::ranges::count(is_matched, 1);
      for (const int ratio : {0, 1, 3, 15, 30}) {
        const auto expected =
            reference::mine_hard_negatives(losses, is_matched, num_matched * ratio);
        EXPECT_EQ(mine_hard_negatives(losses, is_matched, ratio, is_chosen),
                  std::ranges::count(expected, 1));
        EXPECT_EQ(is_chosen, expected) << n << " " << num_values << " " << ratio;
      }
    }
  }
}

TEST(SelectionTest, AllPlacesOfWhatIsNotZeroAreFound) {
  std::mt19937 random(2);
  for (const std::int64_t n : {0, 1, 7, 8, 9, 63, 64, 500}) {
    for (const int one_of : {1, 2, 40}) {
      std::vector<std::uint8_t> values(n);
      for (auto& value : values) value = random() % one_of == 0 ? 1 + random() % 255 : 0;
      const std::int64_t num_found = n - std::ranges::count(values, 0);
      for (const std::int64_t num_places : {0, 1, 8, 60, 600}) {
        std::vector<std::int64_t> places(num_places, -7);
        EXPECT_EQ(fixed_nonzero(values, places), std::min(num_found, num_places));
        EXPECT_EQ(places, reference::fixed_nonzero(values, num_places))
            << n << " " << one_of << " " << num_places;
      }
    }
  }
}

/// In 200,000 some five pairs have equal upper halves.
TEST(SelectionTest, APermutationIsThatOfTheReference) {
  for (const Isa isa : {Isa::kPortable, Isa::kAvx2, Isa::kAvx512}) {
    const kernels::IsaLimit limit(isa);
    for (const std::int64_t n : {1, 2, 3, 4, 5, 15, 16, 17, 1023, 1024, 1025, 200'000}) {
      std::vector<std::int64_t> order(n);
      random_permutation(0x123456789ABCDEF0, order);
      EXPECT_EQ(order, reference::random_permutation(0x123456789ABCDEF0, n)) << n;
    }
  }
}

}  // namespace
}  // namespace trireme::vision
