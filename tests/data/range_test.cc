#include "trireme/data/range.h"

#include <gtest/gtest.h>

#include "trireme/error.h"

namespace trireme::data {
namespace {

TEST(MicrobatchRange, StepsAndMicrobatchesFollowEachOther) {
  for (const std::int64_t global : {1, 6, 12}) {
    for (const std::int64_t b : {1, 2, 3, 6}) {
      if (global % b != 0) continue;
      std::int64_t expected = 0;
      for (std::int64_t step = 0; step < 3; ++step) {
        for (std::int64_t m = 0; m < global / b; ++m) {
          const IndexRange range = microbatch_range({global, b}, step * global, m);
          EXPECT_EQ(range, (IndexRange{expected, expected + b}));
          expected = range.end;
        }
      }
    }
  }
}

TEST(MicrobatchRange, RefusesNonsense) {
  EXPECT_THROW(microbatch_range({4, 3}, 0, 0), Error);
  EXPECT_THROW(microbatch_range({4, 0}, 0, 0), Error);
  EXPECT_THROW(microbatch_range({0, 1}, 0, 0), Error);
  EXPECT_THROW(microbatch_range({4, 2}, 0, 2), Error);
  EXPECT_THROW(microbatch_range({4, 2}, 0, -1), Error);
  EXPECT_THROW(microbatch_range({4, 2}, -4, 0), Error);
}

TEST(EvaluationRange, CountsEverySampleOnceWithASmallerLastMicrobatch) {
  for (const std::int64_t n : {0, 1, 4, 5, 8, 9}) {
    for (const std::int64_t b : {1, 4, 100}) {
      std::int64_t expected = 0;
      const std::int64_t count = num_evaluation_microbatches(n, b);
      for (std::int64_t m = 0; m < count; ++m) {
        const IndexRange range = evaluation_range(n, b, m);
        EXPECT_EQ(range.begin, expected);
        EXPECT_GE(range.size(), 1);
        EXPECT_TRUE(range.size() == b || (m + 1 == count && range.size() < b));
        expected = range.end;
      }
      EXPECT_EQ(expected, n);
      EXPECT_THROW(evaluation_range(n, b, count), Error);
    }
  }
  EXPECT_THROW(evaluation_range(4, 0, 0), Error);
  EXPECT_THROW(num_evaluation_microbatches(-1, 1), Error);
}

}  // namespace
}  // namespace trireme::data
