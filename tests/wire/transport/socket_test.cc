// Connecting to who is not there, yet or at all.

#include "trireme/wire/transport/socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string>

#include "tests/wire/transport/ranks.h"

namespace trireme::transport::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

/// A free port as the system chooses for those who connect: they have even numbers.
int free_port() {
  for (int i = 0; i < 1000; ++i) {
    const int port = local_address(listen_on({})).port ^ 1;
    try {
      return local_address(listen_on({.host = "127.0.0.1", .port = port})).port;
    } catch (const Error&) {  // in use
      continue;
    }
  }
  return 0;
}

// Of some ten thousand tries one is given the port that it connects to.
TEST(Connect, NobodyConnectsToItself) {
  const ConnectPolicy without_pauses{.deadline = 1s, .first_pause = 0ms, .longest_pause = 0ms};
  const Error error =
      error_of_call([&] { connect_to({"127.0.0.1", free_port()}, without_pauses); });
  EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
  EXPECT_THAT(error.message(), HasSubstr("Connection refused"));
}

}  // namespace
}  // namespace trireme::transport::test
