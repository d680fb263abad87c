#include "trireme/plan/simulate/bucket_completions.h"

#include <gtest/gtest.h>

#include "tests/plans/chain_model.h"

namespace trireme::simulate {
namespace {

using layout::testing::make_chain;
using layout::testing::make_plan;

// A bucket for each parameter; the backward comes to the last node first.
TEST(BucketCompletions, FollowTheBackwardFromTheLastNodeToTheFirst) {
  const auto model = make_chain({{1, 1, 2}, {1, 2, 2}, {1, 1, 0}, {1, 1, 1}});
  const layout::Plan plan = make_plan(model.graph, {{2}, 2, 2});
  const auto map = parameters::make_parameter_map(model.graph, plan, {.bucket_bytes = 1});
  const std::vector<double> completions = bucket_completions(model.graph, plan, map, model.profile);
  ASSERT_EQ(completions.size(), 4U);
  for (std::size_t b = 0; b < completions.size(); ++b) {
    const std::string& parameter = map.buckets[b].slots[0].parameter;
    const std::map<std::string, double> expected = {
        {"p1", 4.0 / 7}, {"p0", 1}, {"p3", 2.0 / 3}, {"p2", 1}};
    EXPECT_DOUBLE_EQ(completions[b], expected.at(parameter)) << parameter;
  }
}

}  // namespace
}  // namespace trireme::simulate
