#include "trireme/data/read_parts.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

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
  ReadParts counted;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        const CountedReading counting(&counted);
        read_slowly();
      });
    }
  }
  auto parts = counted.take();
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts["read"].count, 3);
  EXPECT_EQ(parts["read"].bytes, 300);
  EXPECT_GE(parts["read"].time, milliseconds(60));
  EXPECT_GE(parts["decode"].time, milliseconds(120));
  EXPECT_LT(parts["sample"].time, parts["decode"].time) << "the parts inside are not of it";
  EXPECT_TRUE(counted.take().empty()) << "each part is taken once";
}

/// Of two who read in one process, each has its own.
TEST(ReadParts, AreOfWhoReads) {
  ReadParts outer, inner;
  const auto read = [](std::int64_t bytes) { ReadTimer("read").add_bytes(bytes); };
  read(1);
  {
    const CountedReading counting(&outer);
    read(2);
    {
      const CountedReading counting_inside(&inner);
      read(4);
      const CountedReading nobody(nullptr);
      read(8);
    }
    read(16);
  }
  read(32);
  EXPECT_EQ(outer.take()["read"].bytes, 18);
  EXPECT_EQ(inner.take()["read"].bytes, 4);
}

}  // namespace
}  // namespace trireme::data
