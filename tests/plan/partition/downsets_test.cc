#include "trireme/plan/partition/downsets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>

#include "tests/graphs/graph_builder.h"
#include "tests/plan/partition/search_cases.h"
#include "tests/plans/random_models.h"
#include "trireme/plan/graph/node_order.h"
#include "trireme/plan/layout/plan_check.h"
#include "trireme/plan/partition/linear_orders.h"
#include "trireme/plan/partition/stage_ranges.h"

namespace trireme::partition {
namespace {

using layout::testing::Model;
using layout::testing::random_model;

/// The least slowest stage over all ways to take sets of blocks, each with all that must run before it.
class LeastMax {
 public:
  LeastMax(const BlockGraph& graph, SetCost& cost, int num_stages)
      : graph_(graph), cost_(cost), num_stages_(num_stages) {}

  double us() { return from(0, 0); }

 private:
  using Set = unsigned;  ///< Blocks as bits.

  Set all() const { return (1U << graph_.blocks().size()) - 1; }

  /// Of stages `stage` and later, which run what is not done.
  double from(Set done, int stage) {
    const auto [entry, is_new] = known_.try_emplace({done, stage}, kUnlimited);
    if (!is_new) return entry->second;
    double least = kUnlimited;
    if (stage + 1 == num_stages_) {
      least = done == all() ? kUnlimited : time_us(done, all(), stage);
    } else {
      for (Set next = done + 1; next < all(); ++next) {
        if ((next & done) != done || !is_downset(next)) continue;
        least = std::min(least, std::max(time_us(done, next, stage), from(next, stage + 1)));
      }
    }
    return known_[{done, stage}] = least;
  }

  bool is_downset(Set set) const {
    for (std::size_t b = 0; b < graph_.blocks().size(); ++b) {
      if ((set >> b & 1U) == 0) continue;
      for (const int before : graph_.blocks()[b].before) {
        if ((set >> before & 1U) == 0) return false;
      }
    }
    return true;
  }

  double time_us(Set done, Set next, int stage) {
    std::vector<int> positions;
    std::vector<bool> is_done(graph_.recorded().nodes.size());
    for (std::size_t b = 0; b < graph_.blocks().size(); ++b) {
      if ((next >> b & 1U) == 0) continue;
      for (int p = graph_.blocks()[b].begin; p < graph_.blocks()[b].end; ++p) {
        is_done[p] = true;
        if ((done >> b & 1U) == 0) positions.push_back(p);
      }
    }
    return cost_.time(positions, is_done, stage).slowest_us();
  }

  const BlockGraph& graph_;
  SetCost& cost_;
  int num_stages_;
  std::map<std::pair<Set, int>, double> known_;
};

RangeRules rules_of(std::mt19937& random, int num_stages) {
  RangeRules rules{.num_microbatches = 3,
                   .in_flight = std::vector<int>(num_stages, 1),
                   .slowness = std::vector<double>(num_stages, 1)};
  for (int s = 0; s + 1 < num_stages; ++s) {
    rules.link_kinds.push_back(random() % 2 == 0 ? profile::LinkKind::kHost
                                                 : profile::LinkKind::kNetwork);
  }
  for (double& slowness : rules.slowness) slowness = 0.5 + 0.5 * static_cast<double>(random() % 3);
  return rules;
}

TEST(SetCost, IsThatOfRangesWhereSetsAreRanges) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    const Model model = random_model(random, 12);
    const int num_nodes = static_cast<int>(model.graph.nodes.size());
    const RangeRules rules = rules_of(random, 3);
    RangeCost ranges(model.graph, model.profile, rules, RangeGoal::kTime);
    SetCost sets(model.graph, model.profile, rules);
    for (int begin = 0; begin < num_nodes; ++begin) {
      ranges.begin(begin);
      std::vector<bool> is_done(num_nodes);
      std::fill(is_done.begin(), is_done.begin() + begin, true);
      std::vector<int> positions;
      for (int p = begin; p < num_nodes; ++p) {
        ranges.extend();
        positions.push_back(p);
        is_done[p] = true;
        const int stage = static_cast<int>(random() % 3);
        ASSERT_NEAR(sets.time(positions, is_done, stage).slowest_us(), ranges.time_us(stage), 1e-6)
            << "round " << round << ", nodes " << begin << " to " << p;
      }
    }
  }
}

/// Times that are rounded when they are added up.
Model with_fractional_times(std::mt19937& random, Model model) {
  std::uniform_real_distribution<double> fraction(0, 1);
  for (profile::NodeCost& cost : model.profile.costs) {
    cost.forward_us += fraction(random);
    cost.input_us += fraction(random);
  }
  return model;
}

/// Against all of them, on graphs of up to 10 nodes.
TEST(Downsets, TheBestCutsOfAllOrdersAreFound) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  int num_found = 0, num_beyond = 0;
  for (int round = 0; round < 150; ++round) {
    Model model = random_model(random, 5 + static_cast<int>(random() % 6));
    if (round % 2 == 1) model = with_fractional_times(random, std::move(model));
    const int num_stages = 2 + static_cast<int>(random() % 3);
    const RangeRules rules = rules_of(random, num_stages);
    const BlockGraph graph(model.graph, model.profile);
    SetCost cost(model.graph, model.profile, rules);
    const double least = LeastMax(graph, cost, num_stages).us();
    for (const double most_us : {1e9, 1.0001 * least, least}) {
      const auto stages = cut_downsets(
          graph, cost, {.num_stages = num_stages, .slowness = rules.slowness, .most_us = most_us});
      ASSERT_EQ(stages.has_value(), least < most_us) << "round " << round;
      if (!stages) continue;
      std::vector<int> order;
      double most = 0;
      std::vector<bool> is_done(model.graph.nodes.size());
      for (int s = 0; s < num_stages; ++s) {
        std::vector<int> positions;
        for (const int b : (*stages)[s]) {
          order.push_back(b);
          for (int p = graph.blocks()[b].begin; p < graph.blocks()[b].end; ++p) {
            positions.push_back(p);
            is_done[p] = true;
          }
        }
        most = std::max(most, cost.time(positions, is_done, s).slowest_us());
      }
      EXPECT_NEAR(most, least, 1e-9 * least) << "round " << round;
      EXPECT_EQ(graph::why_not_in_order(model.graph, graph.nodes(order)), "");
      ++num_found;
      num_beyond += std::ranges::is_sorted(order) ? 0 : 1;
    }
  }
  EXPECT_GT(num_found, 100);
  EXPECT_GT(num_beyond, 10);
}

/// Two towers of as many layers over the same batch, all of one width, recorded one after the other or layer by layer; what
/// both give is added.
Model towers(int num_layers, bool is_by_layer) {
  graph::testing::GraphBuilder b;
  std::vector<graph::ValueId> ends(2, b.input("x", {1000}));
  const auto add_layer = [&](int tower, int layer) {
    const graph::ValueId w = b.parameter(std::to_string(tower) + "." + std::to_string(layer), {1});
    ends[tower] = b.node("mul", {ends[tower], w}, b.batch({1000}));
  };
  for (int i = 0; i < 2 * num_layers; ++i) {
    is_by_layer ? add_layer(i % 2, i / 2) : add_layer(i / num_layers, i % num_layers);
  }
  b.loss(b.node("add", {ends[0], ends[1]}, b.batch({1})));
  Model model{b.graph(), layout::testing::make_free_profile(b.graph())};
  for (int n = 0; n < 2 * num_layers; ++n) {
    model.profile.costs[n].forward_us = model.profile.costs[n].input_us = 10;
  }
  return model;
}

TEST(LinearOrders, TowersOneAfterTheOtherAndSideBySide) {
  const Model by_layer = towers(3, true), one_by_one = towers(3, false);
  using Orders = std::vector<std::vector<int>>;
  EXPECT_EQ(linear_orders(BlockGraph(by_layer.graph, by_layer.profile), 1),
            (Orders{{0, 2, 4, 1, 3, 5, 6, 7}}));
  EXPECT_EQ(linear_orders(BlockGraph(one_by_one.graph, one_by_one.profile), 1),
            (Orders{{0, 3, 1, 4, 2, 5, 6, 7}}));
}

}  // namespace
}  // namespace trireme::partition
