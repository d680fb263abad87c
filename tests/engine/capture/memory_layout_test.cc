#include "trireme/engine/capture/memory_layout.h"

#include <gtest/gtest.h>

#include <random>

namespace trireme::capture {
namespace {

bool overlap_in_time(const Block& a, const Block& b) {
  return a.first <= b.last && b.first <= a.last;
}

// Forward 0 1 2 | backward 3 4 5:
//
//   a  xx....    b  ..xx..    c  ....xx    d  ...x..
//
// b is kept; a comes before it and fits there; c comes after it and does, too; d needs memory of the backward.
TEST(MemoryLayout, WhatIsKeptServesBeforeAndAfter) {
  const MemoryLayout layout = lay_out({{64, 0, 1}, {64, 2, 3}, {64, 4, 5}, {64, 3, 3}}, {0, 3, 6});
  EXPECT_EQ(layout.kept_bytes, 64U);
  EXPECT_EQ(layout.offsets, (std::vector<std::size_t>{0, 0, 0, 64}));
  EXPECT_EQ(layout.phase_bytes[0], 0U);
  EXPECT_EQ(layout.phase_bytes[1], 64U);
}

// Backward 0 1 2 3: in the order of their first steps c would lie above b.
//
//   a  xx..  small    b  .xx.  small    c  ..xx  large
TEST(MemoryLayout, LargeBlocksAreNotPushedUpBySmallOnes) {
  const MemoryLayout layout = lay_out({{64, 0, 1}, {64, 1, 2}, {640, 2, 3}}, {0, 0, 4});
  EXPECT_EQ(layout.phase_bytes[1], 704U);
}

// Forward 0 1 | backward 2 3 | weights 4 5:
//
//   a  xxx...    b  xxxxx.    c  ...xx.    d  ....x.
//
// Each pair of phases has a region; d may lie in those that the last phase has, where no other does: it needs memory of its own.
TEST(MemoryLayout, ARegionBelongsToThePhasesThatItConnects) {
  const MemoryLayout layout = lay_out({{64, 0, 2}, {64, 0, 4}, {64, 3, 4}, {64, 4, 4}}, {0, 2, 4});
  EXPECT_EQ(layout.offsets, (std::vector<std::size_t>{0, 64, 128, 192}));
  EXPECT_EQ(layout.kept_bytes, 192U);
  for (const KeptRegion& region : layout.regions) EXPECT_EQ(region.bytes, 64U);
  EXPECT_EQ(layout.phase_bytes, (std::array<std::size_t, 3>{0, 0, 64}));
}

TEST(MemoryLayout, BlocksThatLiveAtOnceLieApart) {
  for (int seed = 0; seed < 50; ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    constexpr int kSteps = 40;
    constexpr PhaseBegins kBegins = {0, 20, 30};
    std::vector<Block> blocks;
    for (int i = 0; i < 60; ++i) {
      const int first = static_cast<int>(random() % kSteps);
      const int last = first + static_cast<int>(random() % static_cast<unsigned>(kSteps - first));
      blocks.push_back({random() % 500, first, last});
    }
    const MemoryLayout layout = lay_out(blocks, kBegins);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const std::size_t begin = layout.offsets[i], end = begin + blocks[i].bytes;
      EXPECT_EQ(begin % 64, 0U);
      const bool is_kept = begin < layout.kept_bytes;
      const int phase = phase_at(kBegins, blocks[i].first);
      EXPECT_LE(end, layout.kept_bytes + (is_kept ? 0 : layout.phase_bytes[phase])) << seed;
      const bool is_of_several = phase_at(kBegins, blocks[i].last) != phase;
      EXPECT_TRUE(!is_of_several || is_kept || blocks[i].bytes == 0);
      const int last = phase_at(kBegins, blocks[i].last);
      for (const KeptRegion& region : layout.regions) {
        const bool touches = begin < region.begin + region.bytes && region.begin < end;
        EXPECT_TRUE(!touches || (region.first <= phase && last <= region.last)) << seed;
      }
      for (std::size_t j = 0; j < i; ++j) {
        if (!overlap_in_time(blocks[i], blocks[j])) continue;
        EXPECT_TRUE(end <= layout.offsets[j] || layout.offsets[j] + blocks[j].bytes <= begin)
            << "seed " << seed << ", blocks " << i << " and " << j;
      }
    }
  }
}

}  // namespace
}  // namespace trireme::capture
