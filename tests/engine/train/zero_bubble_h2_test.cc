#include <gtest/gtest.h>

#include "tests/engine/train/layouts.h"

namespace trireme::train {
namespace {

class ZeroBubbleH2 : public testing::TestWithParam<Layout> {};

TEST_P(ZeroBubbleH2, HasTheBitsOfTheSerialExecutor) { expect_bits_of_serial_executor(GetParam()); }

/// Every model, on two to four ranks, some with replicas, recomputing, with sharded state, or in bf16.
std::vector<Layout> h2_layouts() {
  std::vector<Layout> result;
  for (std::size_t m = 0; m < models::names().size(); ++m) {
    result.push_back({.model = models::names()[m],
                      .stages = static_cast<int>(m % 3 + 2),
                      .replicas = m % 2 == 0 ? 2 : 1,
                      .lanes = m % 2 == 0 ? 4 : 6,
                      .schedule = "zero_bubble_h2",
                      .recomputes = m % 4 == 1,
                      .regions = 3,
                      .shards_state = m % 4 == 2,
                      .precision = m % 3 == 1 ? Precision::kBf16 : Precision::kF32});
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(Models, ZeroBubbleH2, testing::ValuesIn(h2_layouts()));

}  // namespace
}  // namespace trireme::train
