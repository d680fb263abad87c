#include "trireme/launch/rank_process.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>

#include "tests/base/few_descriptors.h"
#include "trireme/error.h"
#include "trireme/wire/system/socket.h"

namespace trireme::launch::test {
namespace {

using namespace std::chrono_literals;

/// All that comes until the end of a captured output.
std::string read_all(const Descriptor& pipe) {
  std::string text;
  std::array<char, 256> buffer;
  pollfd entry{.fd = pipe.number(), .events = POLLIN, .revents = 0};
  while (::poll(&entry, 1, 5'000) > 0) {
    const ssize_t count = ::read(pipe.number(), buffer.data(), buffer.size());
    if (count <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return text;
}

// One less each time, down to too few: /dev/null is the last that a start needs.
TEST(RankProcess, OutOfDescriptorsHasItsOutputsCapturedOrIsNotStarted) {
  if (!trireme::test::kMayWantDescriptors) GTEST_SKIP() << "the sanitizer opens pipes";
  int num_captured = 0;
  int num_refused = 0;
  for (rlim_t number = 16; number > 0; --number) {
    const trireme::test::FewDescriptors few(number);
    try {
      const RankProcess process = start_process(0, {.program = "echo",
                                                    .words = {"echo", "captured"},
                                                    .variables = environment_with({}, {}),
                                                    .captures_output = true});
      EXPECT_EQ(read_all(process.output), "captured\n") << number;
      EXPECT_TRUE(transport::wait_readable(process.ended, std::chrono::steady_clock::now() + 5s));
      EXPECT_EQ(take_end(process).code, 0);
      ++num_captured;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kResourceExhausted) << number;
      ++num_refused;
    }
  }
  EXPECT_GT(num_captured, 0);
  EXPECT_GT(num_refused, 0);
}

}  // namespace
}  // namespace trireme::launch::test
