#include "tests/engine/train/random_layouts.h"
#include "tests/engine/train/random_trial.h"

namespace trireme::train {
namespace {

TEST(RandomGraphs, GiveThePlainModelCutEverywhereOrAreRefused) { try_random_nets(1, 300); }

TEST(RandomGraphs, TrainedByRanksHaveTheBitsOfOneProcess) { try_random_layouts(1, 300); }

// Gradients of a view and of its base were added in another order where both were sent.
TEST(RandomGraphs, SendNoViewOfMemoryThatWasWrittenSinceBesideItsLike) {
  for (const std::uint64_t seed : {2084, 2492, 10670}) try_random_nets(seed, 1);
}

}  // namespace
}  // namespace trireme::train
