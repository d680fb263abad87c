#include "trireme/engine/record/recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <optional>

#include "tests/models/models.h"
#include "trireme/engine/operators/token_rows.h"
#include "trireme/engine/record/graph_difference.h"
#include "trireme/engine/record/state_guard.h"
#include "trireme/error.h"
#include "trireme/model.h"
#include "trireme/plan/graph/cuts.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/graph/graph_queries.h"

namespace trireme::record {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> node_names(const graph::Graph& graph) {
  std::vector<std::string> names;
  for (const graph::Node& node : graph.nodes) names.push_back(node.name);
  return names;
}

Recording record_model(const models::TestModel& test, graph::Mode mode = graph::Mode::kTrain) {
  return record(test.model, test.make_batch, mode);
}

TEST(Recording, NodesAreNamedAfterTheModulesOfTheirParameters) {
  EXPECT_THAT(
      node_names(record_model(models::make("mlp")).graph),
      ElementsAre("first/t", "first/addmm", "first/relu", "second/t", "second/addmm", "second/tanh",
                  "second/add", "head/t", "head/addmm", "head/cross_entropy_loss"));
}

TEST(Recording, ShapesGrowWithTheBatch) {
  const graph::Graph graph = record_model(models::make("mlp")).graph;
  const graph::Value& hidden = graph.values[graph.nodes[1].outputs[0]];
  EXPECT_THAT(hidden.shape, ElementsAre(graph::Size{1, 0}, graph::Size{0, 24}));
  EXPECT_THAT(hidden.strides, ElementsAre(graph::Size{0, 24}, graph::Size{0, 1}));
}

TEST(Recording, TheModelIsLeftAsItWas) {
  const models::TestModel test = models::make("resnet");
  std::vector<at::Tensor> before;
  for (const NamedTensor& buffer : test.model.buffers) before.push_back(buffer.tensor.clone());
  torch::manual_seed(11);
  const at::Tensor expected = torch::rand({3});
  torch::manual_seed(11);
  record_model(test);
  EXPECT_TRUE(torch::equal(torch::rand({3}), expected));
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_TRUE(torch::equal(before[i], test.model.buffers[i].tensor))
        << test.model.buffers[i].name;
  }
}

TEST(Recording, IsTheSameEachTime) {
  for (const std::string& name : models::names()) {
    EXPECT_EQ(graph::graph_sha256(record_model(models::make(name)).graph),
              graph::graph_sha256(record_model(models::make(name)).graph))
        << name;
  }
}

TEST(Recording, EvaluationHasNoRandomNodesWritesOrGradients) {
  for (const std::string& name : models::names()) {
    const graph::Graph graph = record_model(models::make(name), graph::Mode::kEval).graph;
    for (const graph::Node& node : graph.nodes) EXPECT_FALSE(node.flags.grad_mode) << node.name;
    for (const graph::Buffer& buffer : graph.buffers) {
      EXPECT_EQ(buffer.policy, graph::BufferPolicy::kReadOnly) << buffer.name;
    }
    EXPECT_TRUE(graph::use_sites(graph).empty());
  }
}

TEST(Recording, ATiedParameterHasItsUsesAsSites) {
  const graph::Graph graph = record_model(models::make("transformer")).graph;
  std::vector<int> sites;
  for (const graph::UseSite& site : graph::use_sites(graph)) {
    if (graph.parameters[site.parameter].name == "embedding.weight") sites.push_back(site.site);
  }
  EXPECT_THAT(sites, ElementsAre(0, 1));
}

TEST(Recording, AnUnrolledCellIsOneSiteThatNoCutDivides) {
  const graph::Graph graph = record_model(models::make("tagger")).graph;
  const std::vector<bool> allowed = graph::allowed_cuts(graph);
  int checked = 0;
  for (const graph::UseSite& site : graph::use_sites(graph)) {
    if (graph.parameters[site.parameter].name != "cell.weight_ih") continue;
    EXPECT_EQ(site.nodes.size(), 7U);
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      if (site.nodes.front() < graph.nodes[i].id && graph.nodes[i].id <= site.nodes.back()) {
        EXPECT_FALSE(allowed[i]);
        ++checked;
      }
    }
  }
  EXPECT_GE(checked, 6);
}

TEST(Recording, BatchNormBuffersAreFoundAlthoughNothingSaysThatTheyAreWritten) {
  const graph::Graph graph = record_model(models::make("resnet")).graph;
  for (const graph::Buffer& buffer : graph.buffers) {
    const bool counts = buffer.name.ends_with("num_batches_tracked");
    EXPECT_EQ(buffer.policy,
              counts ? graph::BufferPolicy::kCounter : graph::BufferPolicy::kBatchNorm)
        << buffer.name;
  }
}

struct TwoNames : torch::nn::Module {
  torch::Tensor weight = register_parameter("weight", torch::randn({3, 3}));
  TwoNames() { register_parameter("alias", weight); }
};

TEST(Recording, OneTensorUnderTwoNamesIsOneParameterWithAnAlias) {
  const auto module = std::make_shared<TwoNames>();
  const Model model = make_model(module, [module](const Batch& batch) {
    return torch::mm(torch::mm(batch["x"], module->weight), module->weight).sum();
  });
  const graph::Graph graph = record(
                                 model,
                                 [](std::int64_t size, std::uint64_t) {
                                   Batch batch;
                                   batch.set("x", torch::ones({size, 3}));
                                   return batch;
                                 },
                                 graph::Mode::kTrain)
                                 .graph;
  ASSERT_EQ(graph.parameters.size(), 1U);
  EXPECT_EQ(graph.parameters[0].aliases.size(), 1U);
}

/// A model whose loss is scaled by a temperature that `forward` gets in one way or another.
struct Annealed : torch::nn::Module {
  torch::nn::Linear linear{3, 1};
  double temperature = 1;
  Annealed() { register_module("linear", linear); }
};

Batch three_features(std::int64_t size, std::uint64_t seed) {
  Batch batch;
  batch.set("x", torch::randn({size, 3}, at::make_generator<at::CPUGeneratorImpl>(seed)));
  return batch;
}

TEST(Drift, BakedHostStateIsFoundWhenItChanges) {
  const auto module = std::make_shared<Annealed>();
  const Model model = make_model(module, [module](const Batch& batch) {
    return (module->linear(batch["x"]) * module->temperature).mean();
  });
  const graph::Graph graph = record(model, three_features, graph::Mode::kTrain).graph;
  check_drift(graph, model, three_features, 100);
  module->temperature = 0.5;
  try {
    check_drift(graph, model, three_features, 100);
    FAIL() << "not noticed";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("step 100"));
    EXPECT_THAT(error.message(), HasSubstr("linear/mul"));
    EXPECT_THAT(error.message(), HasSubstr("step scalar"));
  }
}

TEST(Drift, AStepScalarMayChange) {
  const auto module = std::make_shared<Annealed>();
  Model model = make_model(module, [module](const Batch& batch) {
    return (module->linear(batch["x"]) * batch["temperature"]).mean();
  });
  model.step_scalars.push_back(
      {"temperature", [](std::int64_t step) { return 1.0 / (1.0 + step); }});
  const graph::Graph graph = record(model, three_features, graph::Mode::kTrain).graph;
  check_drift(graph, model, three_features, 100);
  const auto input = std::find_if(graph.inputs.begin(), graph.inputs.end(),
                                  [](const graph::Input& i) { return i.name == "temperature"; });
  ASSERT_NE(input, graph.inputs.end());
  EXPECT_EQ(input->batch_dim, -1);
}

TEST(Recording, WhetherTwoTensorsAreEqualIsAskedAgainAtEveryRun) {
  const auto module = std::make_shared<Annealed>();
  const Model model = make_model(module, [module](const Batch& batch) {
    const auto& x = batch["x"];
    const bool is_itself = torch::equal(x, x);  // known: no node
    const auto y = module->linear(x);
    return torch::equal(x, y) || !is_itself ? y.sum() : y.mean();
  });
  const graph::Graph graph = record(model, three_features, graph::Mode::kTrain).graph;
  const auto asked = [](const graph::Node& node) { return node.op == "trireme::expect_equal"; };
  EXPECT_EQ(std::count_if(graph.nodes.begin(), graph.nodes.end(), asked), 1);
  const auto node = std::find_if(graph.nodes.begin(), graph.nodes.end(), asked);
  EXPECT_EQ(node->inputs.at(2), graph::Argument{false});
}

TEST(Recording, TwoRecordingsAtOnceOnOneThreadAreRefused) {
  const auto module = std::make_shared<Annealed>();
  Model model = make_model(
      module, [module](const Batch& batch) { return module->linear(batch["x"]).mean(); });
  const Model inner = model;
  model.forward = [&](const Batch& batch) {
    record(inner, three_features, graph::Mode::kTrain);
    return inner.forward(batch);
  };
  EXPECT_THROW(record(model, three_features, graph::Mode::kTrain), Error);
}

TEST(Recording, WhatForwardThrowsComesThrough) {
  const auto module = std::make_shared<Annealed>();
  const Model model = make_model(
      module, [](const Batch&) -> torch::Tensor { throw std::runtime_error("no data today"); });
  EXPECT_THROW(record(model, three_features, graph::Mode::kTrain), std::runtime_error);
  // and the thread is not left observed
  EXPECT_NO_THROW(record_model(models::make("mlp")));
}

// A recording is no step of a training.
TEST(Recording, PutsRescaledRowsOfAnEmbeddingBack) {
  torch::manual_seed(0);
  const auto embedding =
      std::make_shared<torch::nn::EmbeddingImpl>(torch::nn::EmbeddingOptions(20, 8).max_norm(0.5));
  const Model model = make_model(embedding, [embedding](const Batch& batch) {
    return embedding->forward(batch["t"]).square().mean();
  });
  const auto tokens = [](std::int64_t size, std::uint64_t) {
    Batch batch;
    batch.set("t", torch::arange(20 * size).remainder(20).reshape({size, 20}));
    return batch;
  };
  const torch::Tensor before = embedding->weight.detach().clone();
  const Recording recording = record(model, tokens, graph::Mode::kTrain);
  EXPECT_TRUE(torch::equal(embedding->weight, before));
  EXPECT_EQ(graph::written_parameters(recording.graph), std::vector<int>{0});
  check_drift(recording.graph, model, tokens, 1);
  EXPECT_TRUE(torch::equal(embedding->weight, before));
}

TEST(Recording, RowsOfTokensAreRagged) {
  torch::manual_seed(0);
  torch::nn::Linear linear(2, 3);
  const Model model = make_model(linear.ptr(), [linear](const Batch& batch) mutable {
    const auto tokens = operators::token_rows(batch["lengths"], 5);
    const auto packed = linear(operators::pack_rows(batch["x"], tokens));
    return operators::unpack_rows(packed, tokens,
                                  batch["x"].sum(2).unsqueeze(2).expand({-1, -1, 3}))
        .mean();
  });
  const auto padded = [](std::int64_t size, std::uint64_t seed) {
    torch::manual_seed(seed);
    Batch batch;
    batch.set("x", torch::rand({size, 5, 2}));
    batch.set("lengths", torch::randint(1, 6, {size}, torch::kInt));
    return batch;
  };
  const graph::Graph graph = record(model, padded, graph::Mode::kTrain).graph;
  const auto is_ragged = [&](const std::string& op, std::size_t output) {
    const auto node = std::ranges::find(graph.nodes, op, &graph::Node::op);
    return graph.values[node->outputs[output]].is_ragged;
  };
  EXPECT_TRUE(is_ragged("trireme::token_rows", 0));
  EXPECT_FALSE(is_ragged("trireme::token_rows", 1)) << "offsets";
  EXPECT_TRUE(is_ragged("aten::addmm", 0));
  EXPECT_FALSE(is_ragged("aten::index_copy", 0));
  const auto node = std::ranges::find(graph.nodes, "aten::addmm", &graph::Node::op);
  EXPECT_THAT(graph.values[node->outputs[0]].shape,
              ElementsAre(graph::Size{5, 0}, graph::Size{0, 3}));
  check_drift(graph, model, padded, 1);
}

// The recorded length stands for one that the program gave only where it was longer than needed.
TEST(Recording, PaddingToTheLongestFailsWhereThatIsAnotherOne) {
  const auto pad = [](bool is_given) {
    const auto op =
        c10::Dispatcher::singleton()
            .findSchemaOrThrow("trireme::pad_packed_sequence", "")
            .typed<std::tuple<at::Tensor, at::Tensor>(const at::Tensor&, const at::Tensor&, bool,
                                                      const at::Scalar&, std::int64_t, bool)>();
    const at::Tensor sizes = torch::tensor({2, 1, 1}, torch::kLong);  // three steps at most
    return std::get<0>(op.call(torch::ones({4, 2}), sizes, true, 0.0, 5, is_given));
  };
  EXPECT_EQ(pad(true).sizes(), at::IntArrayRef({2, 5, 2}));
  try {
    pad(false);
    ADD_FAILURE();
  } catch (const c10::Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("had 5 steps when the model was recorded and has "
                                                 "3 now"));
    EXPECT_THAT(error.what(), testing::HasSubstr("give pad_packed_sequence a total_length"));
  }
}

/// Pads what a recurrent layer makes of packed sequences.
Model packing_model(std::optional<std::int64_t> total_length) {
  torch::manual_seed(0);
  const auto gru =
      std::make_shared<torch::nn::GRUImpl>(torch::nn::GRUOptions(2, 2).batch_first(true));
  return make_model(gru, [gru, total_length](const Batch& batch) {
    namespace rnn = torch::nn::utils::rnn;
    const auto packed = rnn::pack_padded_sequence(batch["x"], batch["lengths"], true, false);
    const auto states = std::get<0>(gru->forward_with_packed_input(packed));
    const auto padded = rnn::pad_packed_sequence(states, true, 0.0, total_length);
    return std::get<0>(padded).mean();
  });
}

/// The first sequence is shorter than the others.
Batch packed_batch(std::int64_t size, std::int64_t longest) {
  Batch batch;
  batch.set("x", torch::ones({size, 5, 2}));
  auto lengths = torch::full({size}, longest, torch::kLong);
  if (size > 1) lengths[0] = 1;
  batch.set("lengths", lengths);
  return batch;
}

/// Whether the padding of a recording of packing_model counts as one to a given length.
bool has_given_length(std::optional<std::int64_t> total_length, const BatchMaker& batches) {
  const Recording recording = record(packing_model(total_length), batches, graph::Mode::kTrain);
  const auto pad =
      std::ranges::find(recording.graph.nodes, "trireme::pad_packed_sequence", &graph::Node::op);
  return std::get<bool>(pad->inputs.back().content);
}

// Lengths of a given total are shorter in some batch of one sample, though in none of 4, 6 and 10.
TEST(Recording, AGivenLengthIsToldByBatchesOfOneSample) {
  EXPECT_TRUE(has_given_length(5, [](std::int64_t size, std::uint64_t seed) {
    return packed_batch(size, size > 1 || seed % 2 == 0 ? 5 : 3);
  }));
  const auto always_five = [](std::int64_t size, std::uint64_t) { return packed_batch(size, 5); };
  EXPECT_FALSE(has_given_length(std::nullopt, always_five));
}

// In a large microbatch the longest sequence is nearly always as long as it may be: recorded at that
// size alone, a run would have ended at the first batch where it is not.
TEST(Recording, PaddingToTheLongestIsRefusedThoughTheMicrobatchHidesIt) {
  const auto batches = [](std::int64_t size, std::uint64_t seed) {
    // Of a small batch the longest has two steps or three, of a large one always five.
    return packed_batch(size, size > 10 ? 5 : 2 + static_cast<std::int64_t>(seed % 2));
  };
  try {
    record(packing_model(std::nullopt), batches, {.microbatch = 64});
    ADD_FAILURE() << "was recorded";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("give pad_packed_sequence a total_length"));
  }
}

// What another rank records, over one's own tensors.
TEST(Bind, GivesTheRecordingThatTheModelWouldHave) {
  for (const std::string& name : models::names()) {
    const models::TestModel one = models::make(name), other = models::make(name);
    const Recording expected = record_model(other);
    ASSERT_TRUE(may_be_bound(expected)) << name;
    const graph::Graph graph = record_model(one).graph;
    const Recording bound = bind(
        graph::graph_from_json(graph::to_json(graph), graph::constants_file(graph)), other.model);
    EXPECT_TRUE(bound.graph == expected.graph) << name;
    for (std::size_t i = 0; i < expected.tensors.size(); ++i) {
      const at::Tensor &mine = bound.tensors[i], &own = expected.tensors[i];
      ASSERT_EQ(mine.defined(), own.defined()) << name << " " << i;
      const bool is_constant = graph.values[i].source == graph::ValueSource::kConstant;
      if (own.defined()) {
        EXPECT_TRUE(is_constant ? torch::equal(mine, own) : mine.is_same(own));
      }
    }
  }
}

TEST(Bind, RefusesAnotherModel) {
  const graph::Graph graph = record_model(models::make("mlp")).graph;
  const models::TestModel other = models::make("mlp");
  other.model.parameters[0].tensor.requires_grad_(false);
  EXPECT_THROW(bind(graph, other.model), Error);
  EXPECT_THROW(bind(graph, models::make("unet").model), Error);
}

}  // namespace
}  // namespace trireme::record
