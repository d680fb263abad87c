#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>

#include "tests/data/folder_files.h"
#include "tests/data/number_source.h"

namespace trireme::data {
namespace {

using testing::HasSubstr;

std::shared_ptr<const Source> numbers(std::int64_t base, std::int64_t count) {
  return std::make_shared<NumberSource>(base, count);
}

/// A letter for each sample: the hundreds of its number.
std::string picture(const Source& mixture, std::int64_t begin, std::int64_t end) {
  std::string letters;
  for (std::int64_t i = begin; i < end; ++i) {
    letters += static_cast<char>('a' + number_at(mixture, i).index / 100);
  }
  return letters;
}

TEST(Mixture, ARoundHasEachSourceByItsWeightEvenlySpread) {
  const auto of = [&](std::vector<std::int64_t> weights) {
    std::vector<MixturePart> parts;
    for (const std::int64_t weight : weights) {
      parts.push_back({numbers(100 * std::ssize(parts), 10), weight});
    }
    return picture(*mix(parts, {.num_samples = 14}), 0, 14);
  };
  EXPECT_EQ(of({1}), "aaaaaaaaaaaaaa");
  EXPECT_EQ(of({1, 1}), "ababababababab");
  EXPECT_EQ(of({2, 1}), "abaabaabaabaab");
  EXPECT_EQ(of({4, 2}), of({2, 1}));
  EXPECT_EQ(of({5, 1, 1}), "aabacaaaabacaa");
  EXPECT_EQ(of({1, 3, 3}), "bcabcbcbcabcbc");
}

/// Over epochs of the mixture that end within rounds, each source is met in its own order, epoch after epoch.
TEST(Mixture, EverySourceIsMetInItsOrder) {
  const std::array<std::int64_t, 3> counts = {7, 30, 4}, weights = {3, 5, 2};
  for (const bool shuffled : {false, true}) {
    std::vector<MixturePart> parts;
    for (std::size_t s = 0; s < 3; ++s) {
      parts.push_back({numbers(100 * static_cast<std::int64_t>(s), counts[s]), weights[s]});
    }
    const auto mixture = mix(parts, {.seed = 4, .shuffled = shuffled});
    ASSERT_EQ(mixture->num_samples(), 41);
    std::array<std::vector<std::int64_t>, 3> met;
    for (std::int64_t place = 0; place < 50 * 41; ++place) {
      const auto [number, visit] = number_at(*mixture, place % 41, place / 41);
      const auto s = static_cast<std::size_t>(number / 100);
      EXPECT_EQ(visit, std::ssize(met[s]) / counts[s]);
      met[s].push_back(number % 100);
    }
    for (std::size_t s = 0; s < 3; ++s) {
      EXPECT_NEAR(static_cast<double>(met[s].size()), 205.0 * static_cast<double>(weights[s]), 1);
      for (std::int64_t begin = 0; begin + counts[s] <= std::ssize(met[s]); begin += counts[s]) {
        std::vector<std::int64_t> epoch(met[s].begin() + begin, met[s].begin() + begin + counts[s]);
        if (!shuffled || s == 1) {  // four samples may happen to be in order
          EXPECT_EQ(std::ranges::is_sorted(epoch), !shuffled) << begin;
        }
        std::ranges::sort(epoch);
        for (std::int64_t i = 0; i < counts[s]; ++i)
          EXPECT_EQ(epoch[static_cast<std::size_t>(i)], i);
      }
    }
  }
}

TEST(Mixture, WhichSampleDependsOnSeedAndPlaceAlone) {
  const auto all_of = [&](std::uint64_t seed) {
    const auto mixture = mix({{numbers(0, 50), 2}, {numbers(100, 60)}}, {.seed = seed});
    std::vector<std::int64_t> all;
    for (std::int64_t i = 109; i >= 0; --i) all.push_back(number_at(*mixture, i, 3).index);
    return all;
  };
  EXPECT_EQ(all_of(1), all_of(1));
  EXPECT_NE(all_of(1), all_of(2));
}

TEST(Mixture, IdentityTellsSourcesWeightsAndOrder) {
  const auto a = numbers(0, 50), b = numbers(100, 60);
  const std::string base = mix({{a, 2}, {b, 4}})->identity();
  EXPECT_EQ(base, mix({{a, 1}, {b, 2}})->identity()) << "the same rounds";
  for (const auto& other :
       {mix({{a, 2}, {b, 1}}), mix({{b, 2}, {a, 4}}), mix({{a, 2}, {b, 4}}, {.seed = 1}),
        mix({{a, 2}, {b, 4}}, {.shuffled = false}), mix({{a, 2}, {b, 4}}, {.num_samples = 7})}) {
    EXPECT_NE(base, other->identity());
  }
}

TEST(Mixture, WhatDoesNotFitIsNamed) {
  const auto complaint = [](const std::vector<MixturePart>& parts,
                            const MixtureOptions& options = {}) {
    const Error error = error_of([&] { mix(parts, options); });
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.message();
  };
  const auto a = numbers(0, 5);
  const auto other = std::make_shared<InMemorySource>(
      2, std::vector<InMemorySource::Column>{
             {{"number", Dtype::kI64, {1}}, share(std::vector<std::int64_t>{1, 2})}});
  EXPECT_THAT(complaint({}), HasSubstr("there are no sources"));
  EXPECT_THAT(complaint({{a}, {nullptr}}), HasSubstr("source 1 is none"));
  EXPECT_THAT(complaint({{a}, {numbers(0, 0)}}), HasSubstr("source 1 has no samples"));
  EXPECT_THAT(complaint({{a, 0}}), HasSubstr("weight 0; expected 1"));
  EXPECT_THAT(complaint({{a}, {other}}),
              HasSubstr("source 1 differs from the first in field 'number'"));
  EXPECT_THAT(complaint({{a, 1 << 20}, {a, (1 << 20) - 1}}), HasSubstr("coarser"));
  EXPECT_THAT(complaint({{a}}, {.num_samples = -1}), HasSubstr("negative"));
  const auto mixture = mix({{a}});
  EXPECT_THAT(error_of([&] { number_at(*mixture, 5); }).message(),
              HasSubstr("no sample 5 among 5"));
}

}  // namespace
}  // namespace trireme::data
