#include "trireme/engine/train/parameter_groups.h"

#include <gmock/gmock.h>

#include "tests/base/error_of.h"
#include "tests/engine/train/layouts.h"

namespace trireme::train {
namespace {

using testing::HasSubstr;
using trireme::test::error_of;

TEST(ParameterGroups, TheLastThatFitsCounts) {
  const OptimizerOptions options{.groups = {{"*", 0.5}, {"*.bias", 0.0, 2}, {"head.?*", {}, 0}}};
  EXPECT_EQ(rule_of(options, "body.weight", 3).weight_decay, 0.5);
  EXPECT_EQ(rule_of(options, "body.bias", 3).weight_decay, 0.0);
  EXPECT_EQ(rule_of(options, "body.bias", 3).learning_rate, 6);
  EXPECT_EQ(rule_of(options, "head.bias", 3).weight_decay, std::nullopt);
  EXPECT_EQ(rule_of(options, "head.bias", 3).learning_rate, 0);
  EXPECT_EQ(rule_of({}, "head.bias", 3).learning_rate, 3);
}

TEST(ParameterGroups, AreTextsOfTheCommandLine) {
  const ParameterGroup group = parse_parameter_group("*.bias,weight-decay=0,rate-scale=0.5");
  EXPECT_EQ(group.names, "*.bias");
  EXPECT_EQ(group.weight_decay, 0.0);
  EXPECT_EQ(group.learning_rate_scale, 0.5);
  EXPECT_EQ(to_text(parse_parameter_group(to_text(group))), to_text(group));
  for (const char* text : {"*.bias", "", ",weight-decay=0", "a,weight-decay", "a,decay=1"}) {
    EXPECT_THAT(error_of([&] { parse_parameter_group(text); }).message(),
                HasSubstr("expected PATTERN,weight-decay=NUMBER"))
        << text;
  }
  EXPECT_THAT(error_of([] { parse_parameter_group("a,weight-decay=1x"); }).message(),
              HasSubstr("'1x' is no number"));
}

/// A step of two layers by AdamW, biases without decay and the second layer at half the rate, beside torch's.
TEST(ParameterGroups, UpdateAsTorchDoes) {
  const auto make = [] {
    torch::manual_seed(5);
    const auto net = std::make_shared<torch::nn::SequentialImpl>(torch::nn::Linear(4, 8),
                                                                 torch::nn::Linear(8, 2));
    Model model = make_model(net, [net](const Batch& batch) {
      return net->forward<at::Tensor>(batch["x"]).square().mean();
    });
    torch::manual_seed(6);
    return std::pair(net, Workload{model, tensor_source({{"x", torch::randn({8, 4})}}), nullptr});
  };
  auto [net, workload] = make();
  const auto recorded = record::record(
      workload.model, BatchReader(workload.training, workload.model).maker(), graph::Mode::kTrain);
  const layout::Plan plan =
      layout::make_manual_plan(recorded.graph, graph::graph_sha256(recorded.graph), {}, {8, 8, 1});
  const OptimizerOptions optimizer{.learning_rate = 0.1,
                                   .decay = "linear",
                                   .decay_steps = 4,
                                   .weight_decay = 0.3,
                                   .beta2 = 0.9,
                                   .groups = {{"*.bias", 0.0}, {"1.weight", {}, 0.5}}};
  SerialSession session(workload, recorded, plan, {.shuffled = false, .optimizer = optimizer});
  for (int step = 0; step < 3; ++step) session.step();

  const auto plain = make().first;
  const Batch batch = BatchReader(workload.training, workload.model).read({0, 8});
  const auto group = [](std::vector<at::Tensor> of, double decay) {
    auto options = std::make_unique<torch::optim::AdamWOptions>(0.1);
    options->weight_decay(decay).betas({0.9, 0.9});
    return torch::optim::OptimizerParamGroup(std::move(of), std::move(options));
  };
  auto named = plain->named_parameters();
  torch::optim::AdamW torchs(
      {group({named["0.weight"]}, 0.3), group({named["0.bias"], named["1.bias"]}, 0.0),
       group({named["1.weight"]}, 0.3)},
      torch::optim::AdamWOptions(0.1));
  for (int step = 0; step < 3; ++step) {
    torchs.zero_grad();
    plain->forward<at::Tensor>(batch["x"]).square().mean().backward();
    for (std::size_t g = 0; g < 3; ++g) {
      torchs.param_groups()[g].options().set_lr(0.1 * (4 - step) / 4 * (g == 2 ? 0.5 : 1));
    }
    torchs.step();
  }
  for (const auto& item : named) {
    EXPECT_TRUE(torch::allclose(session.store().value(item.key()), item.value(), 1e-5, 1e-7))
        << item.key();
  }
}

TEST(ParameterGroups, HaveTheSameBitsOnRanks) {
  for (const Layout& layout :
       {Layout{.model = "transformer", .stages = 2, .replicas = 2, .schedule = "zero_bubble"},
        Layout{.model = "transformer", .stages = 4, .schedule = "v_half", .stages_per_rank = 2}}) {
    const layout::Plan plan = plan_of(layout);
    const ComparedSteps options{.num_steps = 3,
                                .seed = 3,
                                .optimizer = {.name = "lamb",
                                              .learning_rate = 0.01,
                                              .decay = "cosine",
                                              .decay_steps = 3,
                                              .groups = {{"*bias", 0.1}, {"*weight", {}, 0.5}}}};
    const reference::RunRecord reference = run_serial(workload_of(layout.model), plan, options);
    run_ranks(layout.num_ranks(), [&](const collectives::World& world) {
      const Comparison result =
          verify_rank(world, workload_of(layout.model), plan, options, reference);
      EXPECT_EQ(first_difference(world, result), "");
    });
  }
}

TEST(ParameterGroups, APatternThatFitsNothingIsRefused) {
  const Layout layout{.model = "mlp"};
  const Workload workload = construct(workload_of("mlp"), 3);
  const auto recorded = record::record(
      workload.model, BatchReader(workload.training, workload.model).maker(), graph::Mode::kTrain);
  const auto refusal = [&](const ParameterGroup& group) {
    return error_of([&] {
             SerialSession(workload, recorded, plan_of(layout), {.optimizer = {.groups = {group}}});
           })
        .message();
  };
  EXPECT_THAT(refusal({"*.beta", 0.0}),
              HasSubstr("no parameter is called like '*.beta'; there are"));
  EXPECT_THAT(refusal({"*", -1.0}), HasSubstr("numbers of 0 or more"));
}

}  // namespace
}  // namespace trireme::train
