#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/models/models.h"
#include "trireme/engine/record/recording.h"
#include "trireme/model.h"

namespace trireme {
namespace {

bool autocasts() { return at::autocast::is_autocast_enabled(at::kCPU); }

TEST(Precision, IsThatOfProductsForTheTimeOfTheForward) {
  for (const auto& [precision, dtype] :
       {std::pair{Precision::kBf16, at::kBFloat16}, std::pair{Precision::kF16, at::kHalf}}) {
    const torch::nn::Linear linear(4, 3);
    Model model;
    at::ScalarType seen = at::kFloat;
    model.forward = [&](const Batch& batch) mutable {
      const at::Tensor y = torch::nn::functional::linear(batch["x"], linear->weight);
      seen = y.scalar_type();
      return Losses{mean_loss(y.mean())};
    };
    Batch batch;
    batch.set("x", torch::ones({2, 4}));
    with_precision(model, Precision::kF32).forward(batch);
    EXPECT_EQ(seen, at::kFloat);
    with_precision(model, precision).forward(batch);
    EXPECT_EQ(seen, dtype);
    EXPECT_FALSE(autocasts());
  }
}

TEST(Precision, IsInTheRecordingAndLeavesParametersAsTheyAre) {
  models::TestModel test = models::make("mlp");
  test.model = with_precision(std::move(test.model), Precision::kBf16);
  const auto recording = record::record(test.model, test.make_batch, graph::Mode::kTrain);
  int num_cast = 0;
  for (const graph::Node& node : recording.graph.nodes) num_cast += node.autocast.has_value();
  EXPECT_EQ(num_cast, static_cast<int>(recording.graph.nodes.size()));
  for (const graph::Parameter& parameter : recording.graph.parameters) {
    EXPECT_EQ(recording.graph.values[parameter.value].dtype, Dtype::kF32);
  }
}

TEST(Precision, OfAForwardThatFailsEndsToo) {
  Model model;
  model.forward = [](const Batch&) -> Losses { throw std::runtime_error("no"); };
  EXPECT_THROW(with_precision(model, Precision::kBf16).forward({}), std::runtime_error);
  EXPECT_FALSE(autocasts());
}

}  // namespace
}  // namespace trireme
