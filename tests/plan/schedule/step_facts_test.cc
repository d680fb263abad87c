#include "trireme/plan/schedule/step_facts.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/plan/schedule/step_cases.h"
#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::schedule {
namespace {

using testing::make_random_case;
using testing::StepCase;

/// Stage of each node, by node id.
std::map<graph::NodeId, int> node_stages(const StepCase& step) {
  std::map<graph::NodeId, int> stages;
  for (std::size_t i = 0; i < step.graph.nodes.size(); ++i) {
    stages[step.graph.nodes[i].id] = layout::stage_of(step.plan, static_cast<int>(i));
  }
  return stages;
}

/// Values and gradients that must travel, told from the graph alone.
std::set<Message> crossing_messages(const StepCase& step) {
  const auto stages = node_stages(step);
  std::map<graph::ValueId, std::set<int>> chains;
  for (const graph::Node& node : step.graph.nodes) {
    for (const graph::ValueId value : graph::input_values(node)) {
      if (step.graph.values[value].source != graph::ValueSource::kNode) continue;
      chains[value].insert(stages.at(step.graph.values[value].producer));
      chains[value].insert(stages.at(node.id));
    }
  }
  std::set<Message> messages;
  for (const auto& [value, chain] : chains) {
    for (auto here = std::next(chain.begin()); here != chain.end(); ++here) {
      messages.insert({ChannelKind::kValue, *chain.begin(), *here, value});
      if (!step.graph.values[value].requires_grad) continue;
      messages.insert({ChannelKind::kGradient, *here, *std::prev(here), value});
    }
  }
  return messages;
}

/// Sites and values of ties that must travel to another rank; the owner is the stage of the first site.
std::set<Message> tie_messages(const StepCase& step) {
  const auto stages = node_stages(step);
  const std::vector<graph::UseSite> sites = graph::use_sites(step.graph);
  std::set<Message> messages;
  std::map<int, int> owners;
  std::set<std::pair<int, int>> mirrored;  // Parameter and position: the first stage there has it.
  for (std::size_t i = 0; i < sites.size(); ++i) {
    const int stage = stages.at(sites[i].nodes.front());
    const int owner = owners.try_emplace(sites[i].parameter, stage).first->second;
    const int position = step.facts.positions[stage];
    if (position == step.facts.positions[owner]) continue;
    messages.insert({ChannelKind::kTieGradient, stage, owner, static_cast<int>(i)});
    if (!mirrored.emplace(sites[i].parameter, position).second) continue;
    messages.insert({ChannelKind::kTieValue, owner, stage, sites[i].parameter});
  }
  return messages;
}

TEST(StepFacts, EverythingThatIsUsedElsewhereTravels) {
  const unsigned seed = 3;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::size_t num_messages = 0;
  for (int i = 0; i < 300; ++i) {
    const StepCase step = make_random_case(random);
    std::set<Message> expected = crossing_messages(step);
    expected.merge(tie_messages(step));
    EXPECT_EQ(step.facts.messages, std::vector<Message>(expected.begin(), expected.end())) << i;
    num_messages += expected.size();
  }
  EXPECT_GT(num_messages, 1000U);
}

TEST(StepFacts, StagesHaveTheirPart) {
  const StepCase step = testing::make_case(testing::make_skips_and_ties(), {.cuts = {1, 3}});
  const StageFacts& last = step.facts.stages[2];
  EXPECT_EQ(last.recvs_of(ChannelKind::kValue),
            (std::vector<Message>{{ChannelKind::kValue, 0, 2, 3}, {ChannelKind::kValue, 1, 2, 5}}));
  EXPECT_TRUE(last.sends_of(ChannelKind::kValue).empty());
  EXPECT_EQ(last.sends_of(ChannelKind::kTieGradient),
            (std::vector<Message>{{ChannelKind::kTieGradient, 2, 0, 1}}));
  EXPECT_EQ(last.buckets, std::vector<int>{2});
  EXPECT_EQ(step.facts.num_microbatches, 2);
}

TEST(StepFacts, ActionsCarryValuesForwardAndGradientsBack) {
  EXPECT_EQ(carried_by(ActionKind::kForward), ChannelKind::kValue);
  EXPECT_EQ(carried_by(ActionKind::kBackward), ChannelKind::kGradient);
  EXPECT_EQ(carried_by(ActionKind::kBackwardInput), ChannelKind::kGradient);
  EXPECT_FALSE(carries_messages(ActionKind::kBackwardWeight));
  EXPECT_TRUE(completes_gradients(ActionKind::kBackward));
  EXPECT_TRUE(completes_gradients(ActionKind::kBackwardWeight));
  EXPECT_FALSE(completes_gradients(ActionKind::kBackwardInput));
}

}  // namespace
}  // namespace trireme::schedule
