#include "trireme/plan/schedule/action.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trireme/error.h"

namespace trireme::schedule {
namespace {

TEST(Action, TextFormParsesBack) {
  const Action action{ActionKind::kBackwardInput, 12, 305};
  EXPECT_EQ(to_text(action), "12I305");
  EXPECT_EQ(parse_action("12I305"), action);
  for (const char* text : {"0F0", "2B1", "10I2", "3W2147483647"}) {
    EXPECT_EQ(to_text(parse_action(text)), text);
  }
}

TEST(Action, OtherTextIsRefusedByName) {
  for (const char* bad : {"", "F", "2F", "F0", "2X0", "2f0", "2F0 ", " 2F0", "-1F0", "-0F0", "2F-1",
                          "02F0", "2F00", "2FF0", "+2F0", "2F99999999999"}) {
    try {
      parse_action(bad);
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
      EXPECT_THAT(error.message(), ::testing::HasSubstr("'" + std::string(bad) + "' is not an"));
    }
  }
}

}  // namespace
}  // namespace trireme::schedule
