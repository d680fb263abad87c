#include <gmock/gmock.h>
#include <torch/torch.h>

#include <atomic>

#include "tests/engine/train/layouts.h"
#include "trireme/model.h"

namespace trireme::train {
namespace {

using testing::HasSubstr;

std::atomic<int> backwards_left{1 << 30};

/// What one of the ranks of a training of two stages ended with.
///
/// num_backwards   of the fragile function that go well.
Error failure_of(const std::function<Workload()>& make, int num_steps, int num_backwards = 0) {
  try {
    run_ranks(2, [&](const collectives::World& world) {
      const Workload workload = make();
      const auto recorded =
          record::record(workload.model, BatchReader(workload.training, workload.model).maker(),
                         graph::Mode::kTrain);
      layout::Plan plan = layout::make_manual_plan(
          recorded.graph, graph::graph_sha256(recorded.graph), layout::even_cuts(recorded.graph, 2),
          {.global_batch = 24, .microbatch = 4, .lanes = 1});
      RankSession session(world, workload, recorded, plan, {});
      if (world.rank() == 0) backwards_left = num_backwards;
      for (int i = 0; i < num_steps; ++i) session.step();
    });
  } catch (const Error& error) {
    return error;
  }
  return {ErrorKind::kCancelled, "nothing failed"};
}

struct Classifier : torch::nn::Module {
  Classifier() {
    first = register_module("first", torch::nn::Linear(6, 8));
    second = register_module("second", torch::nn::Linear(8, 4));
  }
  torch::nn::Linear first{nullptr}, second{nullptr};
};

/// Sample 500 of 501 has class 4 of 4: recordings do not meet it, the first epoch does.
Workload one_bad_label() {
  torch::manual_seed(3);
  const auto net = std::make_shared<Classifier>();
  auto model = make_model(net, [net](const Batch& batch) {
    const auto x = torch::relu(net->first(batch["x"]));
    return torch::nll_loss(torch::log_softmax(net->second(x), 1), batch["label"]);
  });
  const auto label = torch::arange(3000) % 4;
  label[1234] = 4;
  return {std::move(model), tensor_source({{"x", torch::randn({3000, 6})}, {"label", label}}),
          nullptr};
}

// It was `input/output: torch refused an operation: Target 4 is out of bounds.`, without the node,
// or `invalid argument`, for which a program ends with the code of misuse.
TEST(Failures, AForwardNamesNodeInputAndPlace) {
  const Error error = failure_of(one_bad_label, 3000 / 24);
  EXPECT_EQ(error.kind(), ErrorKind::kModelFailure);
  EXPECT_THAT(error.message(), HasSubstr("Target 4 is out of bounds"));
  EXPECT_THAT(error.message(), HasSubstr("nll_loss"));
  EXPECT_THAT(error.message(), HasSubstr("input 'label' i64 [4]"));
  EXPECT_THAT(error.message(), HasSubstr("microbatches are of 4 samples"));
  EXPECT_TRUE(error.context().step && error.context().microbatch && error.context().rank);
  EXPECT_THAT(error.context().operation, HasSubstr("compute 1F"));
}

/// Its backward fails once `backwards_left` are over.
struct Fragile : torch::autograd::Function<Fragile> {
  static torch::Tensor forward(torch::autograd::AutogradContext* /*context*/,
                               const torch::Tensor& x) {
    return x * 2;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* /*context*/,
                                                 const torch::autograd::variable_list& gradients) {
    TORCH_CHECK(--backwards_left >= 0, "the bolt has come loose");
    return {gradients[0] * 2};
  }
};

struct Bolted : torch::nn::Module {
  Bolted() {
    first = register_module("first", torch::nn::Linear(6, 8));
    second = register_module("second", torch::nn::Linear(8, 4));
  }
  torch::nn::Linear first{nullptr}, second{nullptr};
  Opaque bolt = opaque(
      "bolt", [](const TensorList& inputs) { return TensorList{Fragile::apply(inputs[0])}; });
};

Workload loose_bolt() {
  torch::manual_seed(3);
  const auto net = std::make_shared<Bolted>();
  auto model = make_model(net, [net](const Batch& batch) {
    const auto x = net->bolt({net->first(batch["x"])})[0];
    return net->second(torch::relu(x)).square().mean();
  });
  return {std::move(model), tensor_source({{"x", torch::randn({96, 6})}}), nullptr};
}

// A failing backward lost operation, microbatch and node.
TEST(Failures, ABackwardNamesNodeAndPlace) {
  // In its third step, the third of six microbatches.
  const Error error = failure_of(loose_bolt, 4, 2 * 6 + 2);
  EXPECT_NE(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.message(), HasSubstr("the bolt has come loose"));
  EXPECT_THAT(error.message(), HasSubstr("the backward ("));
  EXPECT_THAT(error.message(), HasSubstr("bolt"));
  EXPECT_EQ(error.context().rank, 0);
  EXPECT_EQ(error.context().step, 2);
  EXPECT_EQ(error.context().microbatch, 2);
  EXPECT_EQ(error.context().operation, "compute 0B2");
}

}  // namespace
}  // namespace trireme::train
