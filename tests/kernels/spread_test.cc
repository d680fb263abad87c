#include "trireme/kernels/spread.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <string>
#include <vector>

#include "trireme/error.h"

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

TEST(SpreadTest, AThreadThatCannotBeMadeIsAnError) {
  pthread_attr_t before, too_large;
  ASSERT_EQ(pthread_getattr_default_np(&before), 0);
  ASSERT_EQ(pthread_attr_init(&too_large), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&too_large, std::size_t{1} << 47), 0);
  ASSERT_EQ(pthread_setattr_default_np(&too_large), 0);
  try {
    on_threads(3)(100, [](std::int64_t) {});
    ADD_FAILURE() << "a stack larger than memory was made";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kResourceExhausted);
    EXPECT_NE(error.message().find("thread 2 of 3"), std::string::npos) << error.message();
  }
  EXPECT_EQ(pthread_setattr_default_np(&before), 0);
}

}  // namespace
}  // namespace trireme::kernels
