#include "trireme/base/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "trireme/base/error.h"

namespace trireme {
namespace {

Environment read(const std::map<std::string, std::string>& variables) {
  return read_environment([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

TEST(Environment, HasDefaults) {
  EXPECT_EQ(read({}).log_level, LogLevel::kInfo);
  EXPECT_EQ(read({{"TRIREME_LOG", ""}}).log_level, LogLevel::kInfo);
}

TEST(Environment, ReadsTheLogLevel) {
  EXPECT_EQ(read({{"TRIREME_LOG", "debug"}}).log_level, LogLevel::kDebug);
}

TEST(Environment, NamesTheVariableThatMakesNoSense) {
  try {
    read({{"TRIREME_LOG", "loud"}});
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.message(), ::testing::StartsWith("environment variable TRIREME_LOG: 'loud'"));
  }
}

}  // namespace
}  // namespace trireme
