#include "trireme/plan/sharding/split.h"

#include <gtest/gtest.h>

namespace trireme::sharding {
namespace {

using Shape = std::vector<graph::Size>;

const graph::Size kBatch{1, 0};
graph::Size fixed(std::int64_t size) { return {0, size}; }

TEST(Splits, NeedBlocksThatDivideEvenly) {
  const Shape shape = {kBatch, fixed(12)};
  EXPECT_TRUE(can_split(shape, {1, 1}, 4));
  EXPECT_TRUE(can_split(shape, {1, 3}, 4));
  EXPECT_FALSE(can_split(shape, {1, 3}, 3));
  EXPECT_FALSE(can_split(shape, {1, 1}, 5));
  EXPECT_FALSE(can_split(shape, {0, 1}, 1)) << "grows with the batch";
  EXPECT_FALSE(can_split(shape, {2, 1}, 2));
  EXPECT_FALSE(can_split(shape, {-1, 1}, 2));
}

TEST(Splits, FollowElementsIntoOtherShapes) {
  const Shape flat = {kBatch, fixed(24)}, heads = {kBatch, fixed(4), fixed(6)};
  EXPECT_EQ(reshaped(flat, heads, {1, 1}, 2), (TensorSplit{1, 1}));
  EXPECT_EQ(reshaped(heads, flat, {1, 1}, 2), (TensorSplit{1, 1}));
  // Query, key and value, 4 heads of 2 each.
  const Shape three = {kBatch, fixed(3), fixed(4), fixed(2)};
  EXPECT_EQ(reshaped(flat, three, {1, 3}, 2), (TensorSplit{2, 1}));
  EXPECT_EQ(reshaped(three, flat, {2, 1}, 4), (TensorSplit{1, 3}));
  EXPECT_EQ(reshaped(three, flat, {1, 1}, 3), (TensorSplit{1, 1}));
  // Each head by halves.
  EXPECT_EQ(reshaped(heads, flat, {2, 1}, 2), (TensorSplit{1, 4}));
  EXPECT_EQ(reshaped(flat, heads, {1, 4}, 2), (TensorSplit{2, 1}));
}

TEST(Splits, EndWhereNoDimensionHasThem) {
  const Shape flat = {kBatch, fixed(12)};
  EXPECT_EQ(reshaped(flat, {kBatch, fixed(3), fixed(4)}, {1, 1}, 2), std::nullopt)
      << "half of three";
  EXPECT_EQ(reshaped(flat, {{12, 0}}, {1, 1}, 2), std::nullopt) << "grows with the batch";
  EXPECT_EQ(reshaped(flat, {kBatch, fixed(11)}, {1, 1}, 2), std::nullopt) << "other elements";
}

TEST(Splits, BatchesAndPositionsMayBeFlattened) {
  const Shape rows = {{5, 0}, fixed(8)}, apart = {kBatch, fixed(5), fixed(8)};
  EXPECT_EQ(reshaped(rows, apart, {1, 2}, 2), (TensorSplit{2, 2}));
  EXPECT_EQ(reshaped(apart, rows, {2, 2}, 2), (TensorSplit{1, 2}));
}

TEST(Splits, LeaveStridesOfAPart) {
  graph::Value value{.shape = {kBatch, fixed(5), fixed(8)},
                     .strides = {fixed(120), fixed(24), fixed(1)}};  // a third of its memory
  make_local(value, {2, 1}, 2);
  EXPECT_EQ(value.shape, (Shape{kBatch, fixed(5), fixed(4)}));
  EXPECT_EQ(value.strides, (Shape{fixed(60), fixed(12), fixed(1)}));
  graph::Value moved{.shape = {fixed(4), fixed(6)}, .strides = {fixed(1), fixed(4)}};
  make_local(moved, {1, 1}, 2);
  EXPECT_EQ(moved.strides, (Shape{fixed(1), fixed(4)})) << "the split dimension is the outer one";
}

}  // namespace
}  // namespace trireme::sharding
