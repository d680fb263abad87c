#include "trireme/kernels/spread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "trireme/base/error.h"

namespace trireme::kernels {
namespace {

TEST(SpreadTest, EveryPieceRunsOnce) {
  for (const int num_threads : {1, 2, 7}) {
    for (const std::int64_t n : {0, 1, 2, 1000}) {
      std::vector<std::atomic<int>> runs(n);
      on_threads(num_threads)(n, [&](std::int64_t i) { ++runs[i]; });
      for (const auto& count : runs) EXPECT_EQ(count, 1) << num_threads << " threads, " << n;
    }
  }
}

TEST(SpreadTest, ThrowsWhatAPieceThrows) {
  const auto fail_at_3 = [](std::int64_t i) {
    if (i == 3) throw Error(ErrorKind::kInvalidArgument, "piece 3");
  };
  for (const int num_threads : {1, 2}) {
    EXPECT_THROW(on_threads(num_threads)(100, fail_at_3), Error);
  }
  EXPECT_THROW(on_threads(0), Error);
}

}  // namespace
}  // namespace trireme::kernels
