#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "trireme/engine/record/recording.h"
#include "trireme/error.h"
#include "trireme/model.h"

// Models that ask their data, or what looks like it, which way to go.

namespace trireme::record {
namespace {

using testing::HasSubstr;

Batch masked_batch(std::int64_t size, std::uint64_t seed) {
  Batch batch;
  batch.set("x", torch::randn({size, 3}, at::make_generator<at::CPUGeneratorImpl>(seed)));
  return batch;
}

/// Asks its data which way to go unless it is traced; then it may still ask for another one.
struct Masked : torch::nn::Module {
  torch::nn::Linear linear{3, 1};
  bool is_traced = false;
  bool asks_always = false;
  Masked() { register_module("linear", linear); }

  torch::Tensor forward(const Batch& batch) {
    const auto& x = batch["x"];
    if (asks_always) x.max().item<float>();
    const bool is_needed = is_traced || (x < 0).any().is_nonzero();
    const auto y = linear(x);
    return (is_needed ? y * (x >= 0).all(1, true) : y).mean();
  }
};

Model masked_model(const std::shared_ptr<Masked>& module) {
  Model model = make_model(module);
  model.set_traced = [raw = module.get()](bool traced) {
    return std::exchange(raw->is_traced, traced);
  };
  return model;
}

TEST(Traced, AModelDoesWithoutControlFlowByDataFromThenOn) {
  const auto module = std::make_shared<Masked>();
  const Model model = masked_model(module);
  const Recording recording = record(model, masked_batch, graph::Mode::kTrain);
  EXPECT_THAT(recording.why_traced, HasSubstr("aten::is_nonzero"));
  EXPECT_TRUE(module->is_traced);
  check_drift(recording.graph, model, masked_batch, 100);
  EXPECT_EQ(record(model, masked_batch, graph::Mode::kEval).why_traced, "");
}

TEST(Traced, OnlyForTheEvaluationWhereThatAloneNeedsIt) {
  const auto module = std::make_shared<Masked>();
  EXPECT_NE(record(masked_model(module), masked_batch, graph::Mode::kEval).why_traced, "");
  EXPECT_FALSE(module->is_traced);
}

TEST(Traced, WhatStillDependsOnDataIsRefusedForTheFirstReason) {
  const auto module = std::make_shared<Masked>();
  module->asks_always = true;
  const Model model = masked_model(module);
  EXPECT_THAT([&] { record(model, masked_batch, graph::Mode::kTrain); },
              testing::ThrowsMessage<Error>(HasSubstr("aten::item")));
  EXPECT_FALSE(module->is_traced);
}

TEST(Asked, ValuesThatFollowFromShapesMayBeAskedFor) {
  const auto module = std::make_shared<Masked>();
  const Model model = make_model(module, [module](const Batch& batch) {
    const auto y = module->linear(batch["x"]);
    const auto causal = torch::ones({4, 4}).triu(1);
    const auto positions = causal.nonzero();  // 6 of them, whatever the data
    auto zeros = torch::zeros_like(y);
    const bool is_zero = !zeros.any().is_nonzero();
    const auto of_mask = y.new_ones({4, 2}).index({causal.select(1, 3) > 0});
    return is_zero && causal[0][1].item<float>() > 0
               ? y.mean() * (positions.size(0) + of_mask.size(0))
               : y.sum();
  });
  const graph::Graph graph = record(model, masked_batch, graph::Mode::kTrain).graph;
  check_drift(graph, model, masked_batch, 100);
  EXPECT_TRUE(std::any_of(graph.nodes.begin(), graph.nodes.end(),
                          [](const graph::Node& node) { return node.op == "aten::mean"; }));
}

TEST(Asked, ValuesWrittenFromDataMayNotBeAskedFor) {
  const auto module = std::make_shared<Masked>();
  const auto asked = [&](const std::function<torch::Tensor(const torch::Tensor& y)>& make) {
    const Model model = make_model(module, [&](const Batch& batch) {
      const auto y = module->linear(batch["x"]);
      return make(y).sum().item<float>() > 0 ? y.sum() : y.mean();
    });
    record(model, masked_batch, graph::Mode::kTrain);
  };
  const auto is_refused = testing::ThrowsMessage<Error>(HasSubstr("aten::item"));
  EXPECT_THAT(
      [&] { asked([](const auto& y) { return torch::zeros({1}).add_(y.detach().sum()); }); },
      is_refused);
  EXPECT_THAT(
      [&] {
        asked([](const auto& y) {
          const auto buffer = torch::zeros({3, 3});
          const auto view = buffer[0];
          buffer.select(0, 0).fill_(y.detach().mean());
          return view;
        });
      },
      is_refused);
  EXPECT_THAT([&] { asked([](const auto&) { return torch::rand({2}); }); }, is_refused);
  const auto shape_by_another_object = [&] {
    const Model model = make_model(module, [&](const Batch& batch) {
      const auto found = batch["x"].variable_data().nonzero();
      return module->linear(batch["x"]).sum() / found.size(0);
    });
    record(model, masked_batch, graph::Mode::kTrain);
  };
  EXPECT_THROW(shape_by_another_object(), Error);
}

}  // namespace
}  // namespace trireme::record
