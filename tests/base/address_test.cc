#include "trireme/base/address.h"

#include <gtest/gtest.h>

#include "tests/base/error_of.h"
#include "trireme/error.h"

namespace trireme {
namespace {

TEST(Address, TextForm) {
  for (const char* text : {"127.0.0.1:4000", "[::1]:1", "host.example:65535"}) {
    EXPECT_EQ(to_text(parse_address(text)), text);
  }
  EXPECT_EQ(parse_address("[::1]:1").host, "::1");
}

TEST(Address, OtherTextIsRefused) {
  for (const char* text :
       {"", "host", "host:", ":1", "host:0", "host:70000", "host:-1", "host:1x", "host: 1",
        // Without a bracket it is the host `::`, or `::1:4000` without a port.
        "[::1:4000", "::1]:4000", "::1:4000", "[::1]4000", "[]:1", "[host]:1", "[[::1]]:1"}) {
    EXPECT_EQ(test::error_of([&] { parse_address(text); }).kind(), ErrorKind::kInvalidArgument)
        << text;
  }
}

}  // namespace
}  // namespace trireme
