#include "trireme/data/read_parts.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tests/base/error_of.h"

namespace trireme::data {
namespace {

using std::chrono::milliseconds;

void read_slowly() {
  ReadTimer sample("sample");
  {
    ReadTimer timer("read");
    timer.add_bytes(100);
    std::this_thread::sleep_for(milliseconds(20));
  }
  const ReadTimer timer("decode");
  std::this_thread::sleep_for(milliseconds(40));
}

TEST(ReadParts, AreAddedUpOverThreadsWithoutWhatIsInside) {
  std::map<std::string, ReadPart> parts;
  {
    const ReadProfile profile;
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i) threads.emplace_back(read_slowly);
    threads.clear();
    parts = profile.parts();
  }
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts["read"].count, 3);
  EXPECT_EQ(parts["read"].bytes, 300);
  EXPECT_GE(parts["read"].time, milliseconds(60));
  EXPECT_GE(parts["decode"].time, milliseconds(120));
  EXPECT_LT(parts["sample"].time, parts["decode"].time) << "the parts inside are not of it";
}

TEST(ReadParts, NothingIsTimedWithoutAProfile) {
  read_slowly();
  const ReadProfile profile;
  EXPECT_TRUE(profile.parts().empty());
  EXPECT_NE(test::error_of([] { const ReadProfile other; }).message().find("already"),
            std::string::npos);
}

}  // namespace
}  // namespace trireme::data
