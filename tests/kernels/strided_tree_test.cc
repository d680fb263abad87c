#include "trireme/kernels/reduce/strided_tree.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>
#include <vector>

#include "trireme/kernels/reduce/tree.h"

namespace trireme::kernels {
namespace {

constexpr std::size_t kMost = 8;

/// By the list of merges.
template <ReduceOp Op, typename T>
T by_list(std::array<T, kMost> values, int count) {
  for (const Merge& merge : tree_merges(count)) {
    values[merge.left] = merged<Op, T>(values[merge.left], values[merge.right]);
  }
  return values[0];
}

// Sums of floats differ in almost every other order.
TEST(StridedTree, IsTheTree) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> real(-100, 100);
  for (int round = 0; round < 200; ++round) {
    for (int count = 1; count <= static_cast<int>(kMost); ++count) {
      std::array<float, kMost> values{};
      for (float& value : values) value = real(random);
      EXPECT_EQ(std::bit_cast<std::uint32_t>(strided_tree<ReduceOp::kSum, float>(values, count)),
                std::bit_cast<std::uint32_t>(by_list<ReduceOp::kSum>(values, count)))
          << count;
      EXPECT_EQ((strided_tree<ReduceOp::kMax, float>(values, count)),
                by_list<ReduceOp::kMax>(values, count));
    }
  }
}

TEST(StridedTree, LeavesOutWhatIsBeyond) {
  std::array<std::int32_t, kMost> values{1, 10, 100, 1000, 10'000, 100'000, 1'000'000, 10'000'000};
  std::int32_t expected = 0;
  for (int count = 1; count <= static_cast<int>(kMost); ++count) {
    expected += values[count - 1];
    EXPECT_EQ((strided_tree<ReduceOp::kSum, std::int32_t>(values, count)), expected);
  }
}

// As nvcc needs it.
static_assert(strided_tree<ReduceOp::kSum, float>(std::array<float, 4>{1, 2, 3, 4}, 3) == 6);

}  // namespace
}  // namespace trireme::kernels
