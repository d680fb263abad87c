#include "trireme/remote/retry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/base/error_of.h"

namespace trireme::remote {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

TEST(Retry, WaitsLongerEachTimeUntilPatienceIsOver) {
  Retry retry({.first_wait = 20ms, .longest_wait = 80ms, .patience = 400ms}, "'x'", {});
  std::vector<Clock::duration> waits;
  const Error error = test::error_of([&] {
    for (;;) {
      const auto begin = Clock::now();
      retry.wait("it is busy");
      waits.push_back(Clock::now() - begin);
    }
  });
  EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
  EXPECT_THAT(error.message(), testing::AllOf(HasSubstr("'x' cannot be fetched: it is busy"),
                                              HasSubstr("given up after")));
  ASSERT_GE(waits.size(), 4U);
  EXPECT_GE(waits[0], 10ms);
  EXPECT_GE(waits[2], 40ms);
  EXPECT_GE(waits[3], 40ms);
}

TEST(Retry, ProgressGivesNewPatience) {
  Retry retry({.first_wait = 20ms, .longest_wait = 20ms, .patience = 100ms}, "'x'", {});
  const auto begin = Clock::now();
  while (Clock::now() - begin < 300ms) {
    retry.wait("it is busy");
    retry.note_progress();
  }
}

TEST(Retry, WaitsAsLongAsTheServerAsksIfThatIsBearable) {
  Retry retry({.first_wait = 1ms, .patience = 2s}, "'x'", {});
  const auto begin = Clock::now();
  retry.wait("it is busy", 1s);
  EXPECT_GE(Clock::now() - begin, 1s);
  const Error error =
      test::error_of([&] { retry.wait("it is busy", std::chrono::seconds::max()); });
  EXPECT_THAT(error.message(), HasSubstr("the server asks to wait"));
}

TEST(Retry, AStopEndsAWait) {
  std::stop_source stop;
  Retry retry({.first_wait = 50s, .longest_wait = 50s}, "'x'", stop.get_token());
  const std::jthread other([&] {
    std::this_thread::sleep_for(20ms);
    stop.request_stop();
  });
  EXPECT_EQ(test::error_of([&] { retry.wait("it is busy"); }).kind(), ErrorKind::kCancelled);
}

}  // namespace
}  // namespace trireme::remote
