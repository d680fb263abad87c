#include "packs/vision/data/kept_room.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace trireme::vision {
namespace {

using Part = std::shared_ptr<const KeptRoom::Part>;

TEST(KeptRoom, PartsTakeBytesAndGiveThemBack) {
  for (const KeptRoom::Kind kind : {KeptRoom::Kind::kMemory, KeptRoom::Kind::kFile}) {
    KeptRoom room(10, kind);
    Part four = room.take(4);
    const Part six = room.take(6);
    ASSERT_TRUE(four && six);
    EXPECT_FALSE(room.take(1));
    const Part reader = four;
    four.reset();
    EXPECT_FALSE(room.take(1)) << "somebody still reads it";
  }
  KeptRoom none(0, KeptRoom::Kind::kFile);
  EXPECT_FALSE(none.take(1));
}

TEST(KeptRoom, APartMayOutliveTheRoom) {
  Part part;
  {
    KeptRoom room(10, KeptRoom::Kind::kFile);
    part = room.take(10);
  }
  part.reset();
}

/// Memory lies anywhere; in a file gaps that do not touch are no room for what is larger.
TEST(KeptRoom, OnlyAFileHasGaps) {
  for (const KeptRoom::Kind kind : {KeptRoom::Kind::kMemory, KeptRoom::Kind::kFile}) {
    KeptRoom room(9, kind);
    std::vector<Part> parts;
    for (int i = 0; i < 3; ++i) parts.push_back(room.take(3));
    parts[0].reset();
    parts[2].reset();
    EXPECT_EQ(room.take(6) != nullptr, kind == KeptRoom::Kind::kMemory);
    EXPECT_TRUE(room.take(3));
    parts[1].reset();
    EXPECT_TRUE(room.take(9)) << "gaps that touch are one";
  }
}

/// Taken and given back in any order: parts never overlap or pass the end, and in the end all is one gap.
TEST(KeptRoom, PartsOfAFileNeverOverlap) {
  constexpr std::int64_t kBytes = 200;
  std::mt19937 random(11);
  KeptRoom room(kBytes, KeptRoom::Kind::kFile);
  std::vector<std::pair<Part, std::int64_t>> parts;
  std::vector<bool> used(kBytes);
  const auto mark = [&](const Part& part, std::int64_t bytes, bool value) {
    for (std::int64_t i = 0; i < bytes; ++i) {
      const std::size_t at = part->offset() + static_cast<std::size_t>(i);
      ASSERT_LT(at, used.size());
      ASSERT_NE(used[at], value) << "byte " << at;
      used[at] = value;
    }
  };
  int refused = 0;
  for (int i = 0; i < 5000; ++i) {
    const std::int64_t bytes = 1 + static_cast<std::int64_t>(random() % 40);
    if (const Part part = room.take(bytes)) {
      mark(part, bytes, true);
      parts.emplace_back(part, bytes);
      continue;
    }
    ++refused;
    ASSERT_FALSE(parts.empty()) << "nobody has any, and yet there is no room";
    std::swap(parts[random() % parts.size()], parts.back());
    mark(parts.back().first, parts.back().second, false);
    parts.pop_back();
  }
  EXPECT_GT(refused, 1000);
  parts.clear();
  EXPECT_TRUE(room.take(kBytes));
}

}  // namespace
}  // namespace trireme::vision
