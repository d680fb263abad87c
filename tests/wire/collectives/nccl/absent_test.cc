#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trireme/wire/collectives/device/device_engine.h"

namespace trireme::collectives::test {
namespace {

TEST(Nccl, SaysThatItIsAbsent) {
  const auto reason = why_no_nccl();
  ASSERT_TRUE(reason.has_value());
  EXPECT_EQ(reason->kind(), ErrorKind::kUnavailable);
  EXPECT_THAT(reason->message(), testing::HasSubstr("configure the build anew"));
}

}  // namespace
}  // namespace trireme::collectives::test
