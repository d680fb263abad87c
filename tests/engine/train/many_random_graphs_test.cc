#include "tests/engine/train/random_layouts.h"
#include "tests/engine/train/random_trial.h"

namespace trireme::train {
namespace {

constexpr int kBlock = 500;

class ManyRandomGraphs : public testing::TestWithParam<int> {};

TEST_P(ManyRandomGraphs, GiveThePlainModelCutEverywhereOrAreRefused) {
  try_random_nets(static_cast<std::uint64_t>(GetParam()), kBlock);
}

TEST_P(ManyRandomGraphs, TrainedByRanksHaveTheBitsOfOneProcess) {
  try_random_layouts(static_cast<std::uint64_t>(GetParam()), kBlock);
}

INSTANTIATE_TEST_SUITE_P(TenThousand, ManyRandomGraphs, testing::Range(1000, 11000, kBlock));

}  // namespace
}  // namespace trireme::train
