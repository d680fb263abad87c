#include "trireme/launch/outlet.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <limits.h>
#include <signal.h>
#include <unistd.h>

#include <array>

#include "trireme/base/descriptor.h"

namespace trireme::launch::test {
namespace {

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    reading = Descriptor(ends[0]);
    writing = Descriptor(ends[1]);
  }

  /// What comes in one read of at most `count` bytes.
  std::string read(std::size_t count) const {
    std::string text(count, ' ');
    const ssize_t size = ::read(reading.number(), text.data(), count);
    text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    return text;
  }

  Descriptor reading;
  Descriptor writing;
};

std::string many_lines() {
  std::string text;
  for (int i = 0; text.size() < (std::size_t{3} << 19); ++i) {
    text += "line " + std::to_string(i) + "\n";
  }
  return text;
}

// This test hangs where it blocks.
TEST(Outlet, WaitsForNoReader) {
  const Pipe pipe;
  Outlet outlet(pipe.writing.number());
  outlet.add(many_lines());
  EXPECT_TRUE(outlet.write());
  EXPECT_TRUE(outlet.is_full());
  EXPECT_FALSE(outlet.write());
  EXPECT_EQ(outlet.to_poll(), pipe.writing.number());
}

TEST(Outlet, PassesOnAllOfIt) {
  const Pipe pipe;
  Outlet outlet(pipe.writing.number());
  const std::string text = many_lines();
  outlet.add(text);
  std::string read;
  while (!outlet.is_empty()) {
    outlet.write();
    read += pipe.read(10'000);
  }
  while (read.size() < text.size()) read += pipe.read(10'000);
  EXPECT_TRUE(read == text);
  EXPECT_FALSE(outlet.is_full());
  EXPECT_EQ(outlet.to_poll(), -1);
}

// Those of another writer to the same pipe come between lines.
TEST(Outlet, WritesWholeLines) {
  const Pipe pipe;
  Outlet outlet(pipe.writing.number());
  outlet.add(many_lines());
  outlet.write();
  const std::string text = pipe.read(1 << 20);
  ASSERT_GT(text.size(), 2 * PIPE_BUF);
  EXPECT_EQ(text.back(), '\n');
}

TEST(Outlet, DropsWhatNobodyCanRead) {
  const auto before = ::signal(SIGPIPE, SIG_IGN);
  Pipe pipe;
  Outlet outlet(pipe.writing.number());
  pipe.reading.reset();
  outlet.add("text");
  outlet.write();
  EXPECT_TRUE(outlet.is_empty());
  outlet.add("more");
  EXPECT_TRUE(outlet.is_empty());
  ::signal(SIGPIPE, before);
}

}  // namespace
}  // namespace trireme::launch::test
