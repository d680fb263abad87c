#include "trireme/plan/graph/bytes.h"

#include <gtest/gtest.h>

#include "trireme/error.h"

namespace trireme::graph {
namespace {

Value tensor(Dtype dtype, std::vector<Size> shape) {
  Value value;
  value.dtype = dtype;
  value.shape = std::move(shape);
  return value;
}

TEST(Bytes, DependOnTheBatch) {
  const Value value = tensor(Dtype::kF32, {{4, 0}, {0, 8}, {1, 1}});
  EXPECT_EQ(num_elements_at(value, 0), 0);
  EXPECT_EQ(num_elements_at(value, 1), 4 * 8 * 2);
  EXPECT_EQ(bytes_at(value, 3), 12 * 8 * 4 * 4);
  EXPECT_EQ(bytes_at(tensor(Dtype::kC128, {}), 7), 16);
  EXPECT_EQ(bytes_at(tensor(Dtype::kBool, {{0, 0}, {0, 5}}), 7), 0);
}

TEST(Bytes, RefusesWhatNoTensorHas) {
  EXPECT_THROW(num_elements_at(tensor(Dtype::kF32, {{1, -4}}), 3), Error);
  const std::int64_t big = std::int64_t{1} << 40;
  EXPECT_THROW(num_elements_at(tensor(Dtype::kF32, {{0, big}, {0, big}}), 1), Error);
  EXPECT_THROW(num_elements_at(tensor(Dtype::kF32, {{big, 0}}), big), Error);
  EXPECT_THROW(bytes_at(tensor(Dtype::kF64, {{0, big}, {0, 1 << 21}}), 1), Error);
}

}  // namespace
}  // namespace trireme::graph
