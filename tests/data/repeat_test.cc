#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "tests/data/folder_files.h"
#include "tests/data/number_source.h"
#include "trireme/data/order.h"
#include "trireme/data/repeated_order.h"

namespace trireme::data {
namespace {

using testing::HasSubstr;

struct RepeatCase {
  std::int64_t num_samples = 0, times = 0, batch = 0, block_samples = 0;
  std::uint64_t seed = 0;

  RepeatedOrder order() const {
    return {num_samples,
            seed,
            OrderKind::kShuffled,
            {.times = times, .block_samples = block_samples},
            batch};
  }
  std::int64_t places() const { return num_samples * times; }
  std::int64_t block() const { return std::max(std::int64_t{1}, block_samples / batch) * batch; }
};

std::ostream& operator<<(std::ostream& out, const RepeatCase& one) {
  return out << one.num_samples << " samples " << one.times << " times, batch " << one.batch
             << ", block " << one.block_samples << ", seed " << one.seed;
}

std::vector<RepeatCase> random_cases(int count) {
  std::mt19937 random(7);
  const auto draw = [&](std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(1, most)(random);
  };
  std::vector<RepeatCase> cases = {{1, 1, 1, 1}, {1, 3, 4, 8}, {8, 2, 3, 6}, {12, 4, 3, 6}};
  for (int i = 0; i < count; ++i) {
    cases.push_back({draw(200), draw(5), draw(i % 2 == 0 ? 8 : 60), draw(100),
                     static_cast<std::uint64_t>(draw(1000))});
  }
  return cases;
}

/// Each pass over a block has each of its samples once, and the blocks are those of the usual order.
TEST(Repeat, EachPassOverABlockMeetsItsSamplesOnce) {
  for (const RepeatCase& one : random_cases(300)) {
    SCOPED_TRACE(testing::PrintToString(one));
    const RepeatedOrder order = one.order();
    const SampleOrder usual(one.num_samples, one.seed);
    std::int64_t place = 0;
    for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
      for (std::int64_t first = 0; first < one.num_samples; first += one.block()) {
        const std::int64_t size = std::min(one.block(), one.num_samples - first);
        std::set<std::int64_t> expected;
        for (std::int64_t i = 0; i < size; ++i) {
          expected.insert(usual.sample_at(epoch * one.num_samples + first + i));
        }
        for (std::int64_t pass = 0; pass < one.times; ++pass) {
          std::set<std::int64_t> met;
          for (std::int64_t i = 0; i < size; ++i) {
            const Sample sample = order.sample_at(place++);
            met.insert(sample.index);
            ASSERT_EQ(sample.visit, epoch * one.times + pass);
          }
          ASSERT_EQ(met, expected) << "epoch " << epoch << ", samples from " << first;
        }
      }
    }
    ASSERT_EQ(place, 2 * one.places());
  }
}

/// So that the rank that has decoded it has it again.
TEST(Repeat, ASampleStaysInItsColumnOfTheBatch) {
  for (const RepeatCase& one : random_cases(300)) {
    SCOPED_TRACE(testing::PrintToString(one));
    const RepeatedOrder order = one.order();
    std::map<std::int64_t, std::set<std::int64_t>> columns;
    for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
      columns.clear();
      for (std::int64_t i = 0; i < one.places(); ++i) {
        const std::int64_t place = epoch * one.places() + i;
        columns[order.sample_at(place).index].insert(place % one.batch);
      }
      const auto moved =
          std::ranges::count_if(columns, [](const auto& item) { return item.second.size() > 1; });
      EXPECT_LE(moved, one.num_samples % one.batch) << "epoch " << epoch;
    }
  }
}

TEST(Repeat, BatchesOfOtherPassesAreOthers) {
  const RepeatCase one{.num_samples = 512, .times = 3, .batch = 8, .block_samples = 256, .seed = 5};
  const RepeatedOrder order = one.order();
  std::set<std::vector<std::int64_t>> batches;
  std::int64_t stayed = 0;
  for (std::int64_t step = 0; step < one.places() / one.batch; ++step) {
    std::vector<std::int64_t> batch;
    for (std::int64_t i = 0; i < one.batch; ++i) {
      batch.push_back(order.sample_at(step * one.batch + i).index);
      const std::int64_t pass_before = step * one.batch + i - one.block();
      if (step % 96 >= 32 && order.sample_at(pass_before).index == batch.back()) ++stayed;
    }
    std::ranges::sort(batch);
    EXPECT_TRUE(batches.insert(batch).second) << step;
  }
  // Of 1,024 samples met again, one in 32 by chance.
  EXPECT_GT(stayed, 10);
  EXPECT_LT(stayed, 70);
}

/// The ranks of a batch that has no whole row in the last block, and of a set smaller than a batch.
TEST(Repeat, ASmallSetIsMixedInEachPass) {
  const RepeatCase one{.num_samples = 20, .times = 3, .batch = 64, .block_samples = 64};
  const RepeatedOrder order = one.order();
  std::set<std::vector<std::int64_t>> passes;
  for (std::int64_t pass = 0; pass < 6; ++pass) {
    std::vector<std::int64_t> samples;
    for (std::int64_t i = 0; i < 20; ++i) samples.push_back(order.sample_at(pass * 20 + i).index);
    passes.insert(samples);
  }
  EXPECT_EQ(passes.size(), 6U);
}

TEST(Repeat, OnceIsTheUsualOrderAndTheSeedMakesAnother) {
  const SampleOrder usual(100, 9);
  const RepeatedOrder once(100, 9, OrderKind::kShuffled, {.block_samples = 10}, 7);
  const RepeatedOrder twice(100, 9, OrderKind::kShuffled, {.times = 2}, 7);
  const RepeatedOrder again(100, 9, OrderKind::kShuffled, {.times = 2}, 7);
  const RepeatedOrder other(100, 10, OrderKind::kShuffled, {.times = 2}, 7);
  int differing = 0;
  for (std::int64_t place = 400; place-- > 0;) {
    EXPECT_EQ(once.sample_at(place).index, usual.sample_at(place));
    EXPECT_EQ(once.sample_at(place).visit, usual.epoch_at(place));
    EXPECT_EQ(twice.sample_at(place).index, again.sample_at(place).index);
    differing += twice.sample_at(place).index != other.sample_at(place).index ? 1 : 0;
  }
  EXPECT_GT(differing, 300);
}

TEST(Repeat, DecoratedSourcesSayHowTheyRepeat) {
  const auto numbers = std::make_shared<NumberSource>(100, 10, std::set<std::int64_t>{3});
  const SampleRepeats options{.times = 4, .block_samples = 32};
  const auto repeated = repeat(numbers, options);
  EXPECT_EQ(repeated->num_samples(), 10);
  EXPECT_EQ(repeated->fields(), numbers->fields());
  EXPECT_EQ(repeated->repeats(), options);
  EXPECT_EQ(number_at(*repeated, 7, 5).index, 107);
  EXPECT_EQ(number_at(*repeated, 7, 5).visit, 5);
  EXPECT_EQ(skip_damaged(repeated, {.max_skipped = 1})->repeats(), options);
  EXPECT_EQ(repeat(numbers, {.times = 1}), numbers);
}

/// Parts of 7 and 5 samples, of which one is a mixture, epochs of 10 places that end within the parts' epochs, blocks of 4 places of which the last has
/// 2: each pass over a block has the samples of the mixture's places, in visits of its own.
TEST(Repeat, EachPassOverABlockOfAMixtureHasItsSamples) {
  constexpr std::int64_t kTimes = 3, kPlaces = 10, kBlock = 4;
  const auto inner = mix({{std::make_shared<NumberSource>(100, 5)}}, {.seed = 9});
  const auto mixture =
      mix({{std::make_shared<NumberSource>(0, 7), 2}, {inner, 1}}, {.num_samples = kPlaces});
  const auto repeated = repeat(mixture, {.times = kTimes, .block_samples = kBlock});
  EXPECT_EQ(repeated->num_samples(), kPlaces);
  const RepeatedOrder order(kPlaces, 0, OrderKind::kSequential, repeated->repeats(), 2);
  std::int64_t place = 0;
  std::set<std::pair<std::int64_t, std::int64_t>> met;
  for (std::int64_t epoch = 0; epoch < 5; ++epoch) {
    for (std::int64_t first = 0; first < kPlaces; first += kBlock) {
      const std::int64_t size = std::min(kBlock, kPlaces - first);
      for (std::int64_t pass = 0; pass < kTimes; ++pass) {
        std::multiset<std::pair<std::int64_t, std::int64_t>> expected, found;
        for (std::int64_t i = 0; i < size; ++i) {
          const Sample once = number_at(*mixture, first + i, epoch);
          expected.emplace(once.index, once.visit * kTimes + pass);
          const Sample at = order.sample_at(place++);
          const Sample sample = number_at(*repeated, at.index, at.visit);
          found.emplace(sample.index, sample.visit);
          EXPECT_TRUE(met.emplace(sample.index, sample.visit).second) << "each visit comes once";
        }
        EXPECT_EQ(found, expected) << "epoch " << epoch << ", pass " << pass << " from " << first;
      }
    }
  }
}

TEST(Repeat, IdentityTellsHowSamplesAreRepeated) {
  const auto numbers = std::make_shared<NumberSource>(0, 10);
  std::set<std::string> identities = {fingerprint(*numbers)};
  for (const SampleRepeats& options : {SampleRepeats{.times = 2}, SampleRepeats{.times = 3},
                                       SampleRepeats{.times = 2, .block_samples = 7}}) {
    identities.insert(repeat(numbers, options)->identity());
  }
  identities.insert(repeat(std::make_shared<NumberSource>(1, 10), {.times = 2})->identity());
  for (const auto& mixture : {mix({{numbers}}), mix({{numbers}}, {.seed = 1})}) {
    identities.insert(mixture->identity());
    identities.insert(repeat(mixture, {.times = 2})->identity());
  }
  EXPECT_EQ(identities.size(), 9U);
  EXPECT_FALSE(identities.contains(""));
}

TEST(Repeat, WhatCannotBeRepeatedIsNamed) {
  const auto numbers = std::make_shared<NumberSource>(0, 10);
  const auto complaint = [](const std::shared_ptr<const Source>& source,
                            const SampleRepeats& options) {
    const Error error = error_of([&] { repeat(source, options); });
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.message();
  };
  EXPECT_THAT(complaint(nullptr, {.times = 2}), HasSubstr("no source"));
  EXPECT_THAT(complaint(numbers, {.times = 0}), HasSubstr("1 to 2^20 times, got 0"));
  EXPECT_THAT(complaint(numbers, {.times = (1 << 20) + 1}), HasSubstr("got 1048577"));
  EXPECT_THAT(complaint(numbers, {.times = 2, .block_samples = 0}), HasSubstr("1 sample or more"));
  EXPECT_THAT(complaint(repeat(numbers, {.times = 2}), {.times = 2}), HasSubstr("already"));
  const auto wrapped = skip_damaged(mix({{numbers}}), {});
  EXPECT_THAT(complaint(wrapped, {.times = 2}), HasSubstr("an order of its own"));
  EXPECT_THAT(complaint(mix({{wrapped}}), {.times = 2}), HasSubstr("an order of its own"));
  EXPECT_THAT(complaint(repeat(mix({{numbers}}), {.times = 2}), {.times = 2}),
              HasSubstr("already"));
  EXPECT_THAT(error_of([&] { mix({{repeat(numbers, {.times = 2})}}); }).message(),
              HasSubstr("source 0 repeats its samples; repeat the mixture"));
  const auto order = [](std::int64_t count, std::int64_t times, std::int64_t batch) {
    return error_of([&] { RepeatedOrder(count, 0, OrderKind::kShuffled, {.times = times}, batch); })
        .message();
  };
  EXPECT_THAT(order(5, -1, 2), HasSubstr("how often each is used is -1"));
  EXPECT_THAT(order(5, 2, 0), HasSubstr("the batch is 0"));
  EXPECT_THAT(order(std::int64_t{1} << 61, 3, 2), HasSubstr("more than 2^62"));
  const RepeatedOrder small(5, 0, OrderKind::kShuffled, {.times = 2}, 2);
  EXPECT_THAT(error_of([&] { small.sample_at(-1); }).message(), HasSubstr("not negative"));
}

}  // namespace
}  // namespace trireme::data
