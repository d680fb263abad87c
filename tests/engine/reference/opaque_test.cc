#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/engine/reference/plain_at_every_cut.h"
#include "tests/engine/reference/trial.h"
#include "trireme/error.h"
#include "trireme/model.h"

namespace trireme::reference {
namespace {

/// Chooses by data which of two matrices to use, drops some of the result and counts its calls:
/// nothing of this can be recorded.
struct Chooser : torch::nn::Module {
  torch::Tensor left = register_parameter("left", torch::randn({5, 5}));
  torch::Tensor right = register_parameter("right", torch::randn({5, 5}));
  torch::Tensor calls = register_buffer("calls", torch::zeros({1}));

  TensorList forward(const TensorList& inputs) {
    const bool chooses_left = inputs[0].sum().item<float>() > 0;
    calls.add_(1);
    const auto y = torch::mm(inputs[0], chooses_left ? left : right);
    return {torch::dropout(y, 0.25, true), (y.detach() > 0).sum(1)};
  }
};

struct Host : torch::nn::Module {
  torch::nn::Linear in{5, 5}, out{5, 3};
  std::shared_ptr<Chooser> chooser = std::make_shared<Chooser>();
  Opaque choose = opaque("choose", chooser);

  Host() {
    register_module("in", in);
    register_module("chooser", chooser);
    register_module("out", out);
  }

  torch::Tensor forward(const Batch& batch) {
    const auto x = torch::tanh(in(batch["x"]));
    const auto chosen = choose({x});
    const auto y = out(chosen[0] + 0.5 * x) * (1 + chosen[1].unsqueeze(1)) / 6;
    return y.square().mean();
  }
};

models::TestModel make_host() {
  torch::manual_seed(2);
  return {make_model(std::make_shared<Host>()), [](std::int64_t size, std::uint64_t seed) {
            Batch batch;
            auto random = at::make_generator<at::CPUGeneratorImpl>(seed);
            batch.set("x", torch::randn({size, 5}, random));
            return batch;
          }};
}

TEST(Opaque, IsOneNodeWithItsParametersAndBuffers) {
  const Trial trial(make_host(), {4, 2, 1});
  int found = 0;
  for (const graph::Node& node : trial.recording.graph.nodes) {
    if (node.op != "opaque") continue;
    ++found;
    EXPECT_EQ(node.overload, "choose");
    EXPECT_EQ(node.outputs.size(), 2U);
    EXPECT_EQ(node.writes.size(), 1U);
  }
  EXPECT_EQ(found, 1);
  EXPECT_EQ(trial.recording.graph.buffers[0].policy, graph::BufferPolicy::kEager);
}

TEST(Opaque, ReplayIsThePlainModelWhereverItIsCut) {
  Trial trial(make_host(), {.global_batch = 16, .microbatch = 2, .lanes = 1});
  const StepRecord whole = expect_plain_at_every_cut(trial);
  EXPECT_EQ(whole.buffers.at("chooser.calls").item<float>(), 8);
}

TEST(Opaque, RefusesToReturnMemoryOfAnInput) {
  const Opaque same = opaque("same", [](const TensorList& inputs) { return inputs; });
  EXPECT_THROW(same({torch::ones({2})}), Error);
}

std::string refusal(const std::shared_ptr<torch::nn::LinearImpl>& host, const Opaque& function) {
  const Model model = make_model(host, [host, function](const Batch& batch) {
    return function({host->forward(batch["x"])})[0].mean();
  });
  try {
    record::record(model, make_host().make_batch, graph::Mode::kTrain);
  } catch (const Error& error) {
    return error.message();
  }
  return "was recorded";
}

TEST(Opaque, RefusesToLoseTheGradientOfAParameterThatItCaptured) {
  const auto host = std::make_shared<torch::nn::LinearImpl>(5, 5);
  const Opaque gate = opaque("gate", [host](const TensorList& inputs) {
    return TensorList{torch::mm(inputs[0], host->weight)};
  });
  EXPECT_THAT(refusal(host, gate), testing::HasSubstr("does not list"));
}

TEST(Opaque, RefusesToLoseTheGradientOfALeafThatItKeeps) {
  const auto host = std::make_shared<torch::nn::LinearImpl>(5, 5);
  const auto kept = torch::ones({5, 5}).requires_grad_(true);
  const Opaque gate = opaque(
      "gate", [kept](const TensorList& inputs) { return TensorList{torch::mm(inputs[0], kept)}; });
  EXPECT_THAT(refusal(host, gate), testing::HasSubstr("does not list"));
}

TEST(Opaque, MakesLeavesOfItsOwn) {
  torch::manual_seed(2);
  const auto host = std::make_shared<torch::nn::LinearImpl>(5, 5);
  const Opaque loss = opaque("loss", [](const TensorList& inputs) {
    auto total = torch::full({}, 0.0).requires_grad_(true);
    return TensorList{total + inputs[0].square().mean()};
  });
  Trial trial(
      {make_model(
           host, [host, loss](const Batch& batch) { return loss({host->forward(batch["x"])})[0]; }),
       make_host().make_batch},
      {.global_batch = 6, .microbatch = 3, .lanes = 1});
  expect_plain_at_every_cut(trial);
}

TEST(Opaque, RefusesToWriteToItsInputs) {
  const auto host = std::make_shared<torch::nn::LinearImpl>(5, 5);
  const Opaque doubled = opaque("doubled", [](const TensorList& inputs) {
    inputs[0].mul_(2);
    return TensorList{inputs[0] + 1};
  });
  EXPECT_THAT(refusal(host, doubled), testing::HasSubstr("writes to one of its inputs"));
}

TEST(Opaque, NeedsItsParametersRegistered) {
  const auto chooser = std::make_shared<Chooser>();
  const auto host = std::make_shared<torch::nn::LinearImpl>(5, 5);
  const Model model = make_model(host, [host, choose = opaque("choose", chooser)](const Batch& b) {
    return choose({host->forward(b["x"])})[0].mean();
  });
  try {
    record::record(model, make_host().make_batch, graph::Mode::kTrain);
    FAIL() << "was recorded";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), testing::HasSubstr("'left' is not registered"));
  }
}

}  // namespace
}  // namespace trireme::reference
