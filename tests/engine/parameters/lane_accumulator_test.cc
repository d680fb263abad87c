#include "trireme/engine/parameters/lane_accumulator.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <map>
#include <string>

#include "tests/models/models.h"
#include "trireme/engine/record/recording.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/manual_plan.h"

namespace trireme::parameters {
namespace {

/// A model's parameters, each weight or bias in a bucket of its own; the mlp's unless another is
/// named.
class LaneAccumulatorTest : public testing::Test {
 protected:
  explicit LaneAccumulatorTest(const std::string& model = "mlp")
      : test_(models::make(model)),
        recording_(record::record(test_.model, test_.make_batch, graph::Mode::kTrain)),
        store_(layout::make_parameter_map(recording_.graph, plan_of(recording_.graph)),
               recording_.graph, recording_.tensors, {}) {}

  /// A bucket for each parameter.
  static layout::Plan plan_of(const graph::Graph& graph) {
    layout::Plan plan = layout::make_manual_plan(graph, graph::graph_sha256(graph), {}, {8, 1, 2});
    plan.bucket_bytes = 1;
    return plan;
  }

  /// A gradient that is `number` everywhere.
  at::Tensor gradient(const LaneAccumulator& sums, int site, double number) const {
    return torch::full_like(store_.value(sums.parameter_of(site)), number);
  }

  int bucket_of(const LaneAccumulator& sums, int site) const {
    return store_.owner(sums.parameter_of(site)).bucket;
  }

  models::TestModel test_;
  record::Recording recording_;
  ParameterStore store_;
};

TEST_F(LaneAccumulatorTest, HandsABucketOnWithItsLastGradient) {
  LaneAccumulator sums(store_, recording_.graph, 1);
  ASSERT_GT(sums.num_sites(), 3);
  sums.begin_step();
  for (int site = 0; site < sums.num_sites(); ++site) sums.accept(site, gradient(sums, site, 1));
  std::vector<int> handed;
  sums.begin_last_microbatch(0, [&](int bucket) { handed.push_back(bucket); });
  std::vector<int> expected;
  for (int site = sums.num_sites() - 1; site >= 0; --site) {
    EXPECT_EQ(handed, expected);
    sums.accept(site, gradient(sums, site, 2));
    expected.push_back(bucket_of(sums, site));
    EXPECT_EQ(handed, expected);
    EXPECT_TRUE((sums.site_sum(site) == 3).all().item<bool>());
  }
  sums.end_lane();
  EXPECT_EQ(handed, expected);
  sums.end_step();
}

// A site that only an earlier microbatch reached keeps its sum; one that none did is zero, not what
// the step before left there.
TEST_F(LaneAccumulatorTest, BucketsThatAreNotReachedComeAtTheEndOfTheLane) {
  LaneAccumulator sums(store_, recording_.graph, 1);
  sums.begin_step();
  for (int site = 0; site < sums.num_sites(); ++site) sums.accept(site, gradient(sums, site, 7));
  sums.end_lane();
  sums.end_step();

  sums.begin_step();
  sums.accept(0, gradient(sums, 0, 1));
  std::vector<int> handed;
  sums.begin_last_microbatch(0, [&](int bucket) { handed.push_back(bucket); });
  sums.accept(1, gradient(sums, 1, 2));
  EXPECT_EQ(handed, (std::vector<int>{bucket_of(sums, 1)}));
  sums.end_lane();
  EXPECT_EQ(handed.size(), static_cast<std::size_t>(sums.num_sites()));
  sums.end_step();
  for (int site = 0; site < sums.num_sites(); ++site) {
    const double expected = site == 0 ? 1 : site == 1 ? 2 : 0;
    EXPECT_TRUE((sums.site_sum(site) == expected).all().item<bool>()) << site;
    EXPECT_EQ(sums.has_reached(site), site < 2);
    EXPECT_EQ(sums.has_gradient(sums.parameter_of(site)), site < 2);
  }
}

/// 2^24 and ones: the order of adding shows.
double lane_number(int lane) { return lane % 3 == 0 ? 16777216.0 : 1.0; }

// Three replicas of two lanes side by side: the sum is the tree's over all six, not that of the order in which they come.
TEST_F(LaneAccumulatorTest, ReplicasSideBySideHaveTheSumOfOneAfterTheOther) {
  constexpr int kReplicas = 3, kLanes = 2;
  LaneAccumulator one(store_, recording_.graph, kReplicas * kLanes);
  one.begin_step();
  for (int lane = 0; lane < kReplicas * kLanes; ++lane) {
    one.accept(0, gradient(one, 0, lane_number(lane)));
    one.end_lane();
  }
  one.end_step();
  const at::Tensor expected = one.site_sum(0).clone();
  LaneAccumulator beside(store_, recording_.graph, kLanes, {.num_replicas = kReplicas});
  for (int step = 0; step < 2; ++step) {
    beside.begin_step();
    int num_handed = 0;
    for (int lane = 0; lane < kLanes; ++lane) {
      for (int r = 0; r < kReplicas; ++r) {
        const bool is_last = lane + 1 == kLanes && r + 1 == kReplicas;
        if (is_last) beside.begin_last_microbatch(0, [&](int) { ++num_handed; });
        EXPECT_EQ(num_handed, 0);
        beside.begin_replica(r);
        beside.accept(0, gradient(beside, 0, lane_number(r * kLanes + lane)));
        beside.end_lane();
      }
    }
    beside.end_step();
    EXPECT_EQ(num_handed, beside.num_sites());
    EXPECT_TRUE(at::equal(beside.site_sum(0), expected));
  }
}

TEST_F(LaneAccumulatorTest, HandsOnTheSumOfAllLanes) {
  constexpr int kLanes = 3;
  LaneAccumulator sums(store_, recording_.graph, kLanes);
  sums.begin_step();
  int num_handed = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    if (lane + 1 == kLanes) {
      sums.begin_last_microbatch(0, [&](int bucket) {
        ++num_handed;
        const float* sum = sums.gradients().flat(bucket).const_data_ptr<float>();
        EXPECT_EQ(*sum, 0.1F + 10 + 100);
      });
    }
    const double number = lane == 0 ? 0.1F : lane == 1 ? 10 : 100;
    for (int site = 0; site < sums.num_sites(); ++site) {
      sums.accept(site, gradient(sums, site, number));
    }
    sums.end_lane();
  }
  EXPECT_EQ(num_handed, sums.num_sites());
  sums.end_step();
}

// Lanes are folded in f32; 0.1 + 10 is 10.125 in bf16, and that + 100 is 110.
TEST_F(LaneAccumulatorTest, RoundsWhatTheTreeAddsToBf16) {
  for (const bool is_taken : {false, true}) {
    LaneAccumulator sums(store_, recording_.graph, 3, {.dtype = Dtype::kBf16});
    EXPECT_TRUE(sums.is_rounded(0));
    for (const int lane : {0, 1, 2}) {
      if (lane == 0) sums.begin_step();
      if (lane == 2 && is_taken) sums.begin_last_microbatch(0, [](int /*bucket*/) {});
      const double number = lane == 0 ? 0.1F : lane == 1 ? 10 : 100;
      if (lane < 2) sums.accept(0, gradient(sums, 0, -0x1p-20));
      sums.accept(0, gradient(sums, 0, lane < 2 ? number + 0x1p-20 : number));
      sums.end_lane();
    }
    sums.end_step();
    const float expected = is_taken ? 110.125F : 110;  // who takes it rounds it
    EXPECT_TRUE((sums.site_sum(0) == expected).all().item<bool>()) << is_taken;
  }
}

class TiedLaneAccumulatorTest : public LaneAccumulatorTest {
 protected:
  TiedLaneAccumulatorTest() : LaneAccumulatorTest("transformer") {}
};

TEST_F(TiedLaneAccumulatorTest, AddsTheUsesOfAWeight) {
  LaneAccumulator sums(store_, recording_.graph, 1);
  sums.begin_step();
  std::map<std::string, float> expected;
  float number = 1;
  for (int site = 0; site < sums.num_sites(); ++site, number += 1) {
    sums.accept(site, gradient(sums, site, number));
    expected[sums.parameter_of(site)] += number;
  }
  ASSERT_LT(std::ssize(expected), sums.num_sites()) << "nothing is tied";
  sums.end_lane();
  sums.end_step();
  for (int site = sums.num_sites() - 1; site >= 0; --site) {
    const SlotPlace owner = store_.owner(sums.parameter_of(site));
    const layout::Slot& slot = store_.slot(owner);
    const at::Tensor sum =
        sums.gradients().flat(owner.bucket).narrow(0, slot.offset_elements, slot.num_elements);
    EXPECT_TRUE((sum == expected[sums.parameter_of(site)]).all().item<bool>())
        << sums.parameter_of(site);
  }
}

}  // namespace
}  // namespace trireme::parameters
