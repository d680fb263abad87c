#include "trireme/wire/collectives/host/way.h"

#include <gtest/gtest.h>

#include <functional>

namespace trireme::collectives {
namespace {

/// How many of `count` pieces go past the caches, where they cost what `cost` says.
int streamed_of(Chooser<Way>& chooser, int count, const std::function<double(Way)>& cost) {
  int streamed = 0;
  for (int i = 0; i < count; ++i) {
    const Way way = chooser.choice();
    streamed += way == Way::kStreamed;
    chooser.end_turn(chooser.wants_cost() ? cost(way) : 0);
  }
  return streamed;
}

double cached_is_better(Way way) { return way == Way::kCached ? 1.0 : 1.5; }
double streamed_is_better(Way way) { return way == Way::kCached ? 5.0 : 1.5; }

TEST(Chooser, TakesTheBetterAndTriesTheOtherSeldom) {
  Chooser<Way> cached, streamed;
  EXPECT_LT(streamed_of(cached, 10'000, cached_is_better), 700);
  EXPECT_GT(streamed_of(streamed, 10'000, streamed_is_better), 9'300);
}

TEST(Chooser, FollowsAChange) {
  Chooser<Way> chooser;
  streamed_of(chooser, 10'000, cached_is_better);
  EXPECT_GT(streamed_of(chooser, 1'000, streamed_is_better), 700);
  EXPECT_LT(streamed_of(chooser, 1'000, cached_is_better), 300);
}

// One that was disturbed does not count, where another was not.
TEST(Chooser, TakesTheLeastCosts) {
  Chooser<Way> chooser;
  int number = 0;
  const auto disturbed = [&](Way way) {
    return cached_is_better(way) * (++number % 2 == 0 ? 100 : 1);
  };
  EXPECT_LT(streamed_of(chooser, 10'000, disturbed), 700);
}

}  // namespace
}  // namespace trireme::collectives
