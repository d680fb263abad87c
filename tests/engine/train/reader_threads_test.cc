#include "trireme/engine/train/reader_threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "tests/base/error_of.h"

namespace trireme::train {
namespace {

using testing::HasSubstr;

/// Of a step that takes four microbatches, which one thread reads in 10 ms each, and computes for `computed` seconds beside.
StepReading reading_of(const ReaderThreads& threads, double waited = 0) {
  return {.waited_seconds = waited,
          .read_seconds = 0.040 / threads.count(),
          .batches_read = 4,
          .batches_taken = 4};
}

TEST(ReaderThreads, AsManyAsKeepUp) {
  EXPECT_EQ(threads_that_keep_up({0.1, 1}, 0.4), 1);
  EXPECT_EQ(threads_that_keep_up({0.4, 1}, 0.1), 4);
  EXPECT_EQ(threads_that_keep_up({0.41, 1}, 0.1), 5);
  EXPECT_EQ(threads_that_keep_up({0.2, 2}, 0.1), 4);
  EXPECT_GT(threads_that_keep_up({0.2, 1}, 0), 1000) << "of a step that takes no time";
}

TEST(ReaderThreads, AreThoseThatWereAskedFor) {
  ReaderThreads threads(3, 16);
  for (int step = 0; step < 20; ++step) {
    EXPECT_EQ(threads.add_step(reading_of(threads, 0.035), 0.040), std::nullopt);
  }
  EXPECT_EQ(threads.count(), 3);
  EXPECT_THAT(test::error_of([] { ReaderThreads(-1, 4); }).what(),
              HasSubstr("reader_threads is -1"));
}

// 40 ms of reading beside 20 ms of computing: 40 / 16 of one thread's time.
TEST(ReaderThreads, GrowUntilReadingKeepsUp) {
  ReaderThreads threads(0, 16);
  EXPECT_EQ(threads.add_step(reading_of(threads, 0.020), 0.040), std::nullopt) << "compared";
  EXPECT_EQ(threads.add_step(reading_of(threads, 0.020), 0.040), std::nullopt) << "captured";
  EXPECT_EQ(threads.count(), 1);
  const auto said = threads.add_step(reading_of(threads, 0.020), 0.040);
  EXPECT_EQ(threads.count(), 3);
  EXPECT_THAT(said.value_or(""),
              HasSubstr("with 3 threads from step 4 on: one takes 40.0 ms for what a step takes, "
                        "which computes for 20.0 ms; there are 16 cores"));
  for (int step = 3; step < 30; ++step) {
    EXPECT_EQ(threads.add_step(reading_of(threads), 0.020), std::nullopt) << step;
  }
  EXPECT_EQ(threads.count(), 3);
}

TEST(ReaderThreads, StayAsTheyAreWhereReadingKeepsUp) {
  ReaderThreads threads(0, 16);
  for (int step = 0; step < 10; ++step) {
    EXPECT_EQ(threads.add_step(reading_of(threads), 0.0425), std::nullopt) << "40 ms of 42.5";
  }
  EXPECT_EQ(threads.count(), 1);
}

TEST(ReaderThreads, AreNeverMoreThanCores) {
  for (const int cores : {0, 1, 2, 4}) {
    ReaderThreads threads(0, cores);
    for (int step = 0; step < 10; ++step) threads.add_step(reading_of(threads, 0.038), 0.040);
    EXPECT_EQ(threads.count(), std::max(cores, 1));
  }
}

TEST(ReaderThreads, DecideWithinTenSteps) {
  ReaderThreads threads(0, 16);
  const StepReading nothing;  // of a rank whose stages take no field
  for (int step = 0; step < 10; ++step) threads.add_step(nothing, 0.040);
  for (int step = 0; step < 10; ++step) threads.add_step(reading_of(threads, 0.020), 0.040);
  EXPECT_EQ(threads.count(), 1) << "what is slow later does not count";
}

/// As many microbatches are read ahead as there is room for: of the first steps more than they take.
TEST(ReaderThreads, ReadingAheadIsNotCountedTwice) {
  ReaderThreads threads(0, 16);
  for (int step = 0; step < 3; ++step) {
    threads.add_step({.read_seconds = 0.120, .batches_read = 12, .batches_taken = 4}, 0.100);
  }
  EXPECT_EQ(threads.count(), 1) << "40 ms of a step of 100 ms";
}

TEST(ReaderThreads, WhatIsReadGoesToAllOfThem) {
  ReaderThreads threads(0, 2);
  const kernels::Spread spread = threads.spread();
  const auto threads_met = [&] {
    std::atomic<int> num_begun = 0;
    std::mutex mutex;
    std::set<std::thread::id> met;
    spread(2, [&](std::int64_t) {
      ++num_begun;
      // Each of two threads waits for the other; one alone gives up.
      for (int i = 0; i < 20 && num_begun < 2; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const std::scoped_lock lock(mutex);
      met.insert(std::this_thread::get_id());
    });
    return met.size();
  };
  EXPECT_EQ(threads_met(), 1U);
  for (int step = 0; step < 3; ++step) threads.add_step(reading_of(threads, 0.020), 0.040);
  EXPECT_EQ(threads_met(), 2U) << "the spread that was taken before";
}

TEST(ReaderThreads, AllCoresWhereNothingElseRuns) {
  EXPECT_EQ(threads_at_once(0, 8), 8);
  EXPECT_EQ(threads_at_once(0, 0), 1);
  EXPECT_EQ(threads_at_once(3, 8), 3);
  EXPECT_GE(cores_of_rank(1), 1);
  EXPECT_EQ(cores_of_rank(1 << 20), 1);
}

}  // namespace
}  // namespace trireme::train
