#include "trireme/data/parallel_read.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "tests/base/error_of.h"

namespace trireme::data {
namespace {

/// Reads that take long for the first of them, and fail for some.
class Reads {
 public:
  explicit Reads(std::set<std::int64_t> bad = {}) : bad_(std::move(bad)) {}

  std::vector<int> on(int num_threads, std::int64_t count) {
    std::vector<int> times(static_cast<std::size_t>(count));
    const auto read = [&](std::int64_t i) {
      ++num_calls;
      std::this_thread::sleep_for(std::chrono::microseconds(i < 3 ? 2000 : 10));
      if (bad_.contains(i)) {
        throw Error(ErrorKind::kCorruptData, "sample " + std::to_string(i) + " is bad");
      }
      ++times[static_cast<std::size_t>(i)];
    };
    read_each(count, read, kernels::on_threads(num_threads));
    return times;
  }

  std::atomic<int> num_calls = 0;

 private:
  std::set<std::int64_t> bad_;
};

TEST(ParallelRead, EachIsReadOnce) {
  for (const std::int64_t count : {0, 1, 2, 7, 40}) {
    for (const int threads : {1, 2, 3, 8}) {
      EXPECT_THAT(Reads().on(threads, count), testing::Each(1)) << count << " on " << threads;
    }
  }
}

TEST(ParallelRead, TheErrorIsThatOfTheFirst) {
  for (int threads = 1; threads <= 8; ++threads) {
    const Error error = test::error_of([&] { Reads({2, 3, 5, 39}).on(threads, 40); });
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
    EXPECT_EQ(error.message(), "sample 2 is bad") << threads;
  }
  Reads reads({0});
  test::error_of([&] { reads.on(1, 40); });
  EXPECT_EQ(reads.num_calls, 1) << "nothing behind it need be read";
}

}  // namespace
}  // namespace trireme::data
