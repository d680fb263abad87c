#include "trireme/plan/parameters/show.h"

#include <gtest/gtest.h>

namespace trireme::parameters {
namespace {

TEST(ParameterMapShow, ListsBucketsAndSlots) {
  ParameterMap map{"g", "p", {}};
  map.buckets.push_back({.stage = 1, .num_elements = 20'016});
  map.buckets[0].slots = {{"head.weight", 0, 0, 20'000, 3}, {"head.bias", 0, 20'000, 2, 5}};
  map.buckets[0].shards = {{0, 0, 20'016}};
  EXPECT_EQ(show(map), R"(parameter map
  graph g
  plan p

buckets
  bucket  stage  kind   dtype  elements  slots  shards
       0      1  owner  f32      20,016      2       1

slots, in the order in which the backward fills them
  bucket  parameter    site  offset  elements  first norm block
       0  head.weight     0       0    20,000                 3
       0  head.bias       0  20,000         2                 5
)");
}

TEST(ParameterMapShow, NothingToTrain) {
  EXPECT_NE(show({}).find("buckets\n"), std::string::npos);
}

}  // namespace
}  // namespace trireme::parameters
