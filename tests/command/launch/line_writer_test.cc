#include "trireme/command/launch/line_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <thread>

#include "trireme/base/descriptor.h"

namespace trireme::launch::test {
namespace {

/// What a writer writes.
std::string written_by(const std::function<void(LineWriter&)>& use) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  const Descriptor reading(ends[0]);
  std::string text;
  std::thread reader([&] {
    std::array<char, 4096> buffer;
    for (ssize_t count = 0; (count = ::read(ends[0], buffer.data(), buffer.size())) > 0;) {
      text.append(buffer.data(), static_cast<std::size_t>(count));
    }
  });
  LineWriter writer("[3] ", ends[1]);
  use(writer);
  ::close(ends[1]);
  reader.join();
  return text;
}

TEST(LineWriter, JoinsThePiecesOfALine) {
  EXPECT_EQ(written_by([](LineWriter& writer) {
              for (const char* piece : {"a", "b\nc", "", "\n\nd\n"}) writer.add(piece);
              writer.finish();
            }),
            "[3] ab\n[3] c\n[3] \n[3] d\n");
}

TEST(LineWriter, WritesNothingBeforeALineEnds) {
  EXPECT_EQ(written_by([](LineWriter& writer) { writer.add("half"); }), "");
}

TEST(LineWriter, EndsALastLine) {
  EXPECT_EQ(written_by([](LineWriter& writer) {
              writer.add("last");
              writer.finish();
              writer.finish();
            }),
            "[3] last\n");
}

TEST(LineWriter, BreaksLinesThatAreTooLong) {
  const std::string line(kMaxLine, 'x');
  EXPECT_TRUE(written_by([&](LineWriter& writer) { writer.add(line + "\n"); }) ==
              "[3] " + line + "\n");
  EXPECT_TRUE(written_by([&](LineWriter& writer) {
                writer.add("x");
                writer.add(line + "y\n");
              }) == "[3] " + line + "\n[3] xy\n");
}

}  // namespace
}  // namespace trireme::launch::test
