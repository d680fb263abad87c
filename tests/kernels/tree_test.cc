#include "trireme/kernels/reduce/tree.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "trireme/error.h"

namespace trireme::kernels {
namespace {

/// The sum of items [begin, end) as the definition brackets it, `((0+1)+2)`.
std::string recursive(int begin, int end) {
  if (end - begin == 1) return std::to_string(begin);
  int split = 1;
  while (split * 2 < end - begin) split *= 2;
  return "(" + recursive(begin, begin + split) + "+" + recursive(begin + split, end) + ")";
}

std::string by_merges(int n) {
  std::vector<std::string> items;
  for (int i = 0; i < n; ++i) items.push_back(std::to_string(i));
  for (const Merge merge : tree_merges(n)) {
    items[merge.left] = "(" + items[merge.left] + "+" + items[merge.right] + ")";
  }
  return items.empty() ? "" : items[0];
}

std::string by_lane_tree(int n, int& most_buffers) {
  std::vector<std::string> buffers(LaneTree::num_buffers(n));
  LaneTree tree(n);
  for (int lane = 0; lane < n; ++lane) {
    most_buffers = std::max(most_buffers, tree.next_buffer() + 1);
    buffers.at(tree.next_buffer()) = std::to_string(lane);
    for (const Merge merge : tree.push()) {
      buffers[merge.left] = "(" + buffers[merge.left] + "+" + buffers[merge.right] + ")";
    }
  }
  EXPECT_TRUE(tree.is_complete());
  return buffers[0];
}

TEST(Tree, SplitsAtTheLargestPowerOfTwoBelow) {
  EXPECT_EQ(by_merges(1), "0");
  EXPECT_EQ(by_merges(2), "(0+1)");
  EXPECT_EQ(by_merges(3), "((0+1)+2)");
  EXPECT_EQ(by_merges(4), "((0+1)+(2+3))");
  EXPECT_EQ(by_merges(6), "(((0+1)+(2+3))+(4+5))");
  EXPECT_EQ(by_merges(7), "(((0+1)+(2+3))+((4+5)+6))");
  EXPECT_TRUE(tree_merges(0).empty());
  EXPECT_TRUE(tree_merges(1).empty());
  EXPECT_THROW(tree_merges(-1), Error);
}

TEST(Tree, IncrementalEqualsRecursive) {
  for (int n = 1; n <= 64; ++n) {
    int buffers = 0;
    EXPECT_EQ(by_merges(n), recursive(0, n)) << n;
    EXPECT_EQ(by_lane_tree(n, buffers), recursive(0, n)) << n;
    EXPECT_EQ(buffers, LaneTree::num_buffers(n)) << n;
  }
}

TEST(Tree, NeedsAboutLog2Buffers) {
  EXPECT_EQ(LaneTree::num_buffers(1), 1);
  EXPECT_EQ(LaneTree::num_buffers(2), 2);
  EXPECT_EQ(LaneTree::num_buffers(3), 2);
  EXPECT_EQ(LaneTree::num_buffers(4), 3);
  EXPECT_EQ(LaneTree::num_buffers(8), 4);
  EXPECT_EQ(LaneTree::num_buffers(64), 7);
}

// R ranks with G/R lanes each, G/R a power of two, give the bits of one rank.
TEST(Tree, RanksWithAPowerOfTwoOfLanesAreSubtrees) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    for (const int lanes : {1, 2, 4, 8}) {
      std::vector<std::string> sums;
      for (int rank = 0; rank < ranks; ++rank) {
        sums.push_back(recursive(rank * lanes, (rank + 1) * lanes));
      }
      for (const Merge merge : tree_merges(ranks)) {
        sums[merge.left] = "(" + sums[merge.left] + "+" + sums[merge.right] + ")";
      }
      EXPECT_EQ(sums[0], recursive(0, ranks * lanes)) << ranks << " ranks of " << lanes;
    }
  }
}

TEST(Tree, RefusesMoreLanesThanAnnounced) {
  EXPECT_THROW(LaneTree(0), Error);
  LaneTree tree(1);
  tree.push();
  EXPECT_THROW(tree.push(), Error);
}

}  // namespace
}  // namespace trireme::kernels
