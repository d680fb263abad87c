#include "trireme/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "trireme/error.h"

namespace trireme {
namespace {

using ::testing::MatchesRegex;

/// What `call` writes to standard error.
std::string written(const std::function<void()>& call) {
  testing::internal::CaptureStderr();
  call();
  return testing::internal::GetCapturedStderr();
}

TEST(LogLevel, TextFormParsesBack) {
  for (const char* name : {"debug", "info", "warning", "error", "off"}) {
    EXPECT_EQ(to_text(parse_log_level(name)), name);
  }
  for (const char* bad : {"", "INFO", "warn", "2"}) {
    EXPECT_THROW(parse_log_level(bad), Error) << bad;
  }
}

TEST(Logger, WritesTimeLevelNameAndText) {
  EXPECT_THAT(written([] { Logger(LogLevel::kInfo, "rank 3").warning("late {} %s"); }),
              MatchesRegex("..:..:..\\.... warning rank 3: late \\{\\} %s\n"));
  EXPECT_THAT(written([] { Logger(LogLevel::kDebug).debug("x"); }),
              MatchesRegex("..:..:..\\.... debug x\n"));
}

TEST(Logger, DropsWhatIsBelowItsLevel) {
  const Logger logger(LogLevel::kWarning);
  const Logger copy = logger;
  EXPECT_EQ(written([&] {
              copy.debug("no");
              copy.info("no");
            }),
            "");
  EXPECT_NE(written([&] { copy.error("yes"); }), "");
  EXPECT_FALSE(logger.is_enabled(LogLevel::kInfo));
  EXPECT_TRUE(logger.is_enabled(LogLevel::kWarning));
  EXPECT_EQ(written([] { Logger(LogLevel::kOff).error("no"); }), "");
}

}  // namespace
}  // namespace trireme
