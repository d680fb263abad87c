#include "trireme/plan/sharding/tiles.h"

#include <gtest/gtest.h>

#include "tests/plan/sharding/layers.h"

namespace trireme::sharding {
namespace {

using test::Size;

TEST(Tiles, AreUnevenWhereRowsDoNotDivide) {
  EXPECT_EQ(all_tiles(7, 3), (std::vector<RowRange>{{0, 2}, {2, 4}, {4, 7}}));
  EXPECT_EQ(all_tiles(4, 4), (std::vector<RowRange>{{0, 1}, {1, 2}, {2, 3}, {3, 4}}));
  for (std::int64_t extent = 1; extent < 40; ++extent) {
    for (int num_shards = 1; num_shards <= extent; ++num_shards) {
      std::int64_t end = 0;
      for (const RowRange tile : all_tiles(extent, num_shards)) {
        EXPECT_EQ(tile.begin, end);
        EXPECT_GE(tile.size(), 1);
        end = tile.end;
      }
      EXPECT_EQ(end, extent);
    }
  }
}

TEST(Tiles, HaveAtLeastARow) {
  const std::vector<Size> shape = {{1, 0}, {0, 3}, {0, 5}};
  EXPECT_TRUE(can_tile(shape, 2, 5));
  EXPECT_FALSE(can_tile(shape, 2, 6));
  EXPECT_FALSE(can_tile(shape, 0, 2)) << "grows with the batch";
  EXPECT_FALSE(can_tile(shape, 3, 2));
  EXPECT_FALSE(can_tile(shape, -1, 2));
}

TEST(Tiles, OverlapInWhatBothHave) {
  EXPECT_EQ(overlap({0, 4}, {2, 9}), (RowRange{2, 4}));
  EXPECT_EQ(overlap({0, 4}, {4, 9}).size(), 0);
  EXPECT_EQ(overlap({0, 4}, {6, 9}).size(), 0);
}

// [B, 3, 6, 4] in channels-last order.
TEST(Tiles, KeepTheOrderOfMemory) {
  graph::Value value{.shape = {{1, 0}, {0, 3}, {0, 6}, {0, 4}},
                     .strides = {{0, 72}, {0, 1}, {0, 12}, {0, 3}}};
  set_rows(value, 2, 5);
  EXPECT_EQ(value.shape[2], (Size{0, 5}));
  EXPECT_EQ(value.strides, (std::vector<Size>{{0, 60}, {0, 1}, {0, 12}, {0, 3}}));
}

// Of four rows of eight, a view: what is made of them is dense.
TEST(Tiles, AreDenseWhereWhatTheyAreOfIsNot) {
  graph::Value value{.shape = {{1, 0}, {0, 2}, {0, 4}, {0, 4}},
                     .strides = {{0, 64}, {0, 32}, {0, 4}, {0, 1}}};
  set_rows(value, 2, 5);
  EXPECT_EQ(value.strides, (std::vector<Size>{{0, 40}, {0, 20}, {0, 4}, {0, 1}}));
}

TEST(Tiles, RowsOfOthers) {
  EXPECT_EQ(most_rows_of_others({{0, 4}, {4, 8}}, 8), 0);
  EXPECT_EQ(most_rows_of_others({{0, 5}, {2, 8}}, 8), 2);
}

}  // namespace
}  // namespace trireme::sharding
