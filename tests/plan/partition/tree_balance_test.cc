#include "trireme/plan/partition/tree_balance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

namespace trireme::partition {
namespace {

using Cuts = std::vector<int>;

TEST(TreeBalance, ReadsAsTheExampleInTheHeader) {
  const WeighedModules tree{{"embedding", "blocks.0", "blocks.1", "head"}, {1, 4, 4, 1}};
  EXPECT_EQ(tree_cuts(tree, 2), Cuts{2});
  EXPECT_EQ(tree_cuts(tree, 1), Cuts{});
  EXPECT_EQ(tree_cuts(tree, 4), (Cuts{1, 2, 3}));
}

/// A module is parted only where it has several stages: 6 | 9, though 8 | 7 would be better.
TEST(TreeBalance, ModulesStayWhole) {
  const WeighedModules tree{{"a.0", "a.1", "b.0", "b.1", "b.2"}, {3, 3, 2, 2, 5}};
  EXPECT_EQ(tree_cuts(tree, 2), Cuts{2});
}

/// 5 / 2 is more than 2 / 1: the first module has both, and the second joins.
TEST(TreeBalance, StagesGoWhereEachHasMost) {
  const WeighedModules tree{{"a.0", "a.1", "b"}, {3, 2, 2}};
  EXPECT_EQ(tree_cuts(tree, 2), Cuts{1});
}

/// By weight alone the only element of b would have all stages.
TEST(TreeBalance, NoStageIsEmpty) {
  const WeighedModules tree{{"a", "a", "b"}, {1, 2, 9}};
  EXPECT_EQ(tree_cuts(tree, 2), Cuts{2});
  EXPECT_EQ(tree_cuts(tree, 3), (Cuts{1, 2}));
}

TEST(TreeBalance, WhatWeighsNothingIsDealtOutByNumber) {
  const WeighedModules tree{std::vector<std::string>(6, ""), std::vector<double>(6, 0)};
  EXPECT_EQ(tree_cuts(tree, 3), (Cuts{2, 4}));
}

TEST(TreeBalance, CutsAscendInRandomTrees) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 2000; ++round) {
    WeighedModules tree;
    const int size = 1 + static_cast<int>(random() % 30);
    for (int e = 0; e < size; ++e) {
      std::string module;
      for (auto depth = random() % 4; depth > 0; --depth) {
        module += (module.empty() ? "" : ".") + std::to_string(random() % 2);
      }
      tree.modules.push_back(module);
      tree.weights.push_back(static_cast<double>(random() % 5));
    }
    const int num_stages = 1 + static_cast<int>(random() % size);
    const Cuts cuts = tree_cuts(tree, num_stages);
    ASSERT_EQ(std::ssize(cuts) + 1, num_stages);
    ASSERT_TRUE(std::ranges::adjacent_find(cuts, std::ranges::greater_equal()) == cuts.end());
    ASSERT_TRUE(cuts.empty() || (cuts.front() > 0 && cuts.back() < size));
  }
}

}  // namespace
}  // namespace trireme::partition
