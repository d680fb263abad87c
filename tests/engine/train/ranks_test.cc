#include "tests/engine/train/layouts.h"

namespace trireme::train {
namespace {

/// Every pair of model, stages, replicas with lanes, and schedule occurs.
std::vector<Layout> covering_layouts() {
  std::vector<Layout> result;
  for (std::size_t m = 0; m < models::names().size(); ++m) {
    for (std::size_t r = 0; r < std::size(kReplicas); ++r) {
      result.push_back({.model = models::names()[m],
                        .stages = static_cast<int>((m + r) % 4 + 1),
                        .replicas = kReplicas[r].replicas,
                        .lanes = kReplicas[r].lanes,
                        .schedule = kSchedules[(m / 2 + r) % 2]});
    }
  }
  return result;
}

class Ranks : public testing::TestWithParam<Layout> {};

TEST_P(Ranks, HaveTheBitsOfTheSerialExecutor) { expect_bits_of_serial_executor(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Covering, Ranks, testing::ValuesIn(covering_layouts()));

}  // namespace
}  // namespace trireme::train
