// BERT through the library: recorded, cut, trained by ranks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "recipes/bert/model.h"
#include "tests/engine/train/rank_threads.h"
#include "tests/recipes/bert/random_batch.h"
#include "trireme/engine/train/construct_workload.h"
#include "trireme/engine/train/verify_plan.h"
#include "trireme/engine/train/verify_ranks.h"
#include "trireme/model.h"
#include "trireme/plan/graph/cuts.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/layout/manual_plan.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::recipes::bert {
namespace {

constexpr std::uint64_t kSeed = 3;

struct Case {
  bool is_unpadded = false;
  double dropout = 0;
  std::int64_t blocks = 2;
  Precision precision = Precision::kF32;
  bool shards_state = false;
  std::int64_t num_steps = 2;
};

MakeWorkload workload_of(const Case& given) {
  const auto make = [given] {
    BertConfig config = small_config(given.is_unpadded);
    config.dropout = given.dropout;
    config.blocks = given.blocks;
    Bert net(config);
    auto model = make_model(net.ptr(), [net](const Batch& batch) mutable {
      const auto losses = net->losses(
          {batch["tokens"], batch["types"], batch["length"]},
          {batch["positions"], batch["hidden"], batch["predictions"], batch["is_random"]});
      return Losses{sum_loss(losses.masked_sum, losses.num_masked, "masked"),
                    mean_loss(losses.next_mean, "next"),
                    metric(sum_loss(losses.masked_correct, losses.num_masked), "accuracy")};
    });
    const RandomBatch all(40, 12, 3);
    return Workload{std::move(model),
                    tensor_source({{"tokens", all.sequences.tokens_BS},
                                   {"types", all.sequences.types_BS},
                                   {"length", all.sequences.lengths_B},
                                   {"positions", all.questions.positions_BP},
                                   {"hidden", all.questions.hidden_BP},
                                   {"predictions", all.questions.counts_B},
                                   {"is_random", all.questions.is_random_B}}),
                    nullptr};
  };
  return with_precision(make, given.precision);
}

graph::Graph graph_of(const MakeWorkload& make) {
  const Workload workload = train::construct(make, kSeed);
  const train::BatchReader reader(workload.training, workload.model);
  return record::record(workload.model, reader.maker(), graph::Mode::kTrain).graph;
}

/// Allowed cuts, of which each block has one before it at least: the positions there.
std::vector<int> cuts_before_blocks(const graph::Graph& graph, std::int64_t blocks) {
  const auto allowed = graph::allowed_cuts(graph);
  std::vector<int> cuts;
  for (std::int64_t block = 0; block < blocks; ++block) {
    const std::string name = "blocks." + std::to_string(block) + ".query_key_value/addmm";
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      if (graph.nodes[i].name != name) continue;
      int cut = static_cast<int>(i);
      while (cut > 0 && !allowed[static_cast<std::size_t>(cut)]) --cut;
      cuts.push_back(cut);
    }
  }
  return cuts;
}

TEST(BertRanks, OnTokensAloneEveryBlockIsAPlaceToCut) {
  constexpr std::int64_t kBlocks = 3;
  const graph::Graph graph = graph_of(workload_of({.is_unpadded = true, .blocks = kBlocks}));
  const std::vector<int> cuts = cuts_before_blocks(graph, kBlocks);
  ASSERT_EQ(cuts.size(), 3U);
  EXPECT_GT(cuts[0], 0);
  for (std::size_t b = 1; b < cuts.size(); ++b) {
    const auto between = std::span(graph.nodes).subspan(cuts[b - 1], cuts[b] - cuts[b - 1]);
    EXPECT_EQ(std::ranges::count(between, "trireme::packed_attention", &graph::Node::op), 1);
  }
}

/// Two stages on two replicas as threads against the serial executor, bit by bit.
void expect_same_bits(const Case& given, const std::string& schedule) {
  const auto make = workload_of(given);
  const graph::Graph graph = graph_of(make);
  const std::vector<int> cut = {cuts_before_blocks(graph, given.blocks).back()};
  layout::Plan plan = layout::make_manual_plan(graph, graph::graph_sha256(graph), cut, {16, 2, 4});
  layout::set_replicas(plan, 2);
  plan.schedule.name = schedule;
  plan.sharded_state = given.shards_state;
  const train::ComparedSteps options{
      .num_steps = given.num_steps,
      .seed = kSeed,
      .optimizer = {.name = "lamb", .learning_rate = 0.01, .clip_norm = 0.5}};
  const reference::RunRecord reference = train::run_serial(make, plan, options);
  train::run_ranks(4, [&](const collectives::World& world) {
    const Comparison result = train::verify_rank(world, make, plan, options, reference);
    EXPECT_EQ(train::first_difference(world, result), "") << schedule;
  });
}

TEST(BertRanks, HaveTheBitsOfTheSerialExecutor) {
  expect_same_bits({.is_unpadded = false}, "simple");
  expect_same_bits({.is_unpadded = false, .dropout = 0.1}, "interleaved");
  expect_same_bits({.is_unpadded = true}, "interleaved");
  expect_same_bits({.is_unpadded = true, .dropout = 0.1}, "zero_bubble");
}

// As the recipe is trained: LAMB whose state replicas share, in bf16, on tokens alone.
TEST(BertRanks, HaveItsBitsAfterAHundredStepsOfSharedLamb) {
  expect_same_bits({.is_unpadded = true,
                    .dropout = 0.1,
                    .precision = Precision::kBf16,
                    .shards_state = true,
                    .num_steps = 100},
                   "zero_bubble");
}

TEST(BertRanks, TheCutModelIsTheModel) {
  for (const bool is_unpadded : {false, true}) {
    const auto make = workload_of({.is_unpadded = is_unpadded});
    const graph::Graph graph = graph_of(make);
    const auto plan = layout::make_manual_plan(graph, graph::graph_sha256(graph),
                                               layout::even_cuts(graph, 3), {12, 3, 1});
    const auto results = train::verify(make, plan, {.optimizer = {.name = "sgd"}});
    ASSERT_EQ(results.size(), 2U);
    for (const Comparison& result : results) {
      EXPECT_TRUE(result.passes()) << result.against << ": " << result.first_difference;
    }
  }
}

// Tokens and logits use the one matrix.
TEST(BertRanks, TheEmbeddingIsTied) {
  const graph::Graph graph = graph_of(workload_of({}));
  int sites = 0;
  for (const graph::UseSite& site : graph::use_sites(graph)) {
    sites += graph.parameters[site.parameter].name == "embeddings.tokens.weight" ? 1 : 0;
  }
  EXPECT_EQ(sites, 2);
}

}  // namespace
}  // namespace trireme::recipes::bert
