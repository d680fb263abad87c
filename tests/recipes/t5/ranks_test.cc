// T5 through the library: recorded, cut, trained by ranks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "recipes/t5/model.h"
#include "tests/engine/train/rank_threads.h"
#include "trireme/engine/train/construct_workload.h"
#include "trireme/engine/train/verify_plan.h"
#include "trireme/engine/train/verify_ranks.h"
#include "trireme/model.h"
#include "trireme/plan/graph/cuts.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/layout/manual_plan.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::recipes::t5 {
namespace {

constexpr std::uint64_t kSeed = 3;

MakeWorkload tiny_workload(Variant variant) {
  return [variant] {
    Config config = make_config("tiny", variant);
    config.vocabulary = 50;
    config.dropout = variant == Variant::kV11 ? 0.1 : 0;
    T5 net(config);
    auto model = make_model(net.ptr(), [net](const Batch& batch) mutable {
      const TargetLoss loss = net->loss(batch["inputs"], batch["targets"]);
      return sum_loss(loss.sum, loss.weight);
    });
    auto targets = torch::randint(1, 50, {40, 6}, torch::kInt);
    targets.index_put_({torch::indexing::Slice(0, 40, 3), 5}, 0);  // so that weights differ
    return Workload{std::move(model),
                    tensor_source({{"inputs", torch::randint(1, 50, {40, 9}, torch::kInt)},
                                   {"targets", targets}}),
                    nullptr};
  };
}

record::Recording recording_of(const Workload& workload) {
  const train::BatchReader reader(workload.training, workload.model);
  return record::record(workload.model, reader.maker(), graph::Mode::kTrain);
}

/// The position of the first node of a name.
int position_of(const graph::Graph& graph, const std::string& name) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].name == name) return static_cast<int>(i);
  }
  ADD_FAILURE() << "no node " << name;
  return 0;
}

/// Ranks as threads against the serial executor, bit by bit, under a plan cut at a node.
void expect_same_bits(Variant variant, const std::string& cut, const std::string& schedule) {
  const auto make = tiny_workload(variant);
  const Workload workload = train::construct(make, kSeed);
  const graph::Graph graph = recording_of(workload).graph;
  layout::Plan plan = layout::make_manual_plan(
      graph, graph::graph_sha256(graph), std::vector<int>{position_of(graph, cut)}, {16, 2, 4});
  layout::set_replicas(plan, 2);
  plan.schedule.name = schedule;
  const train::ComparedSteps options{
      .num_steps = 2, .seed = kSeed, .optimizer = {.learning_rate = 0.01, .clip_norm = 0.5}};
  const reference::RunRecord reference = train::run_serial(make, plan, options);
  train::run_ranks(4, [&](const collectives::World& world) {
    const Comparison result = train::verify_rank(world, make, plan, options, reference);
    EXPECT_EQ(train::first_difference(world, result), "") << cut << " " << schedule;
  });
}

TEST(T5Ranks, HaveTheBitsOfTheSerialExecutor) {
  for (const char* schedule : {"simple", "interleaved"}) {
    for (const Variant variant : {Variant::kV10, Variant::kV11}) {
      expect_same_bits(variant, "encoder.layers.1.attention_norm/rms_norm", schedule);
      expect_same_bits(variant, "decoder.layers.1.attention_norm/rms_norm", schedule);
    }
  }
}

TEST(T5Ranks, EveryLayerIsAPlaceToCut) {
  const graph::Graph graph =
      recording_of(train::construct(tiny_workload(Variant::kV10), kSeed)).graph;
  const auto cuts = graph::allowed_cuts(graph);
  for (const std::string stack : {"encoder", "decoder"}) {
    for (const std::string layer : {"0", "1"}) {
      const std::string name = stack + ".layers." + layer + ".attention_norm/rms_norm";
      EXPECT_TRUE(cuts[position_of(graph, name)]) << name;
    }
  }
}

// Inputs, targets and logits use the one matrix: three sites, each in a stage of its own if need
// be.
TEST(T5Ranks, TheEmbeddingIsTied) {
  const graph::Graph graph =
      recording_of(train::construct(tiny_workload(Variant::kV10), kSeed)).graph;
  int sites = 0;
  for (const graph::UseSite& site : graph::use_sites(graph)) {
    sites += graph.parameters[site.parameter].name == "embedding.weight" ? 1 : 0;
  }
  EXPECT_EQ(sites, 3);
}

TEST(T5Ranks, TheCutModelIsTheModel) {
  for (const Variant variant : {Variant::kV10, Variant::kV11}) {
    const Workload workload = train::construct(tiny_workload(variant), kSeed);
    const graph::Graph graph = recording_of(workload).graph;
    const auto plan = layout::make_manual_plan(graph, graph::graph_sha256(graph),
                                               layout::even_cuts(graph, 3), {12, 3, 1});
    const auto results =
        train::verify(tiny_workload(variant), plan, {.optimizer = {.name = "sgd"}});
    ASSERT_EQ(results.size(), 2U);
    for (const Comparison& result : results) {
      EXPECT_TRUE(result.passes()) << result.against << ": " << result.first_difference;
    }
  }
}

}  // namespace
}  // namespace trireme::recipes::t5
