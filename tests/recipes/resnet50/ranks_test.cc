// ResNet through the library: recorded, cut, trained by ranks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "recipes/resnet50/classification.h"
#include "tests/base/test_folder.h"
#include "tests/recipes/rank_bits.h"
#include "tests/recipes/resnet50/painted_images.h"

namespace trireme::recipes::resnet50 {
namespace {

constexpr std::uint64_t kSeed = 3;

class ResNetRanks : public test::TestFolder {
 protected:
  ResNetRanks() { write_images(folder, 8); }

  /// times   that images are used, of which a few are kept.
  MakeWorkload workload(vision::ResNetConfig config, std::int64_t times = 1) const {
    config.num_classes = 3;
    config.has_small_stem = true;
    const auto images = vision::open_images({folder});
    const vision::ImageOptions view{.size = 8, .random = vision::RandomCropOptions{}};
    const auto decoded = std::make_shared<vision::DecodedImages>(
        vision::KeepOptions{.max_bytes = times > 1 ? 10'000 : 0, .times = times});
    const ClassificationData data{.training =
                                      std::make_shared<vision::ImageSource>(images, view, decoded)};
    return [config, data, times] {
      Workload workload = make_classification(config, data, 0.1);
      workload.training = data::repeat(workload.training, {.times = times, .block_samples = 16});
      return workload;
    };
  }
};

TEST_F(ResNetRanks, HaveTheBitsOfTheSerialExecutor) {
  expect_bits_of_serial_executor(workload({.depth = 18, .width = 8}), kSeed, /*num_replicas=*/1);
  expect_bits_of_serial_executor(workload({.depth = 18, .width = 8, .is_channels_last = true}),
                                 kSeed, /*num_replicas=*/2);
}

/// Two of the four samples of a microbatch each; and what the recording at other sizes of batches says of it.
TEST_F(ResNetRanks, HaveTheBitsWithStatisticsOfGroups) {
  expect_bits_of_serial_executor(workload({.depth = 18, .width = 8, .norm_samples = 2}), kSeed,
                                 /*num_replicas=*/2);
}

/// The second step has the images of the first one in other crops, on four ranks read from what each has kept.
TEST_F(ResNetRanks, HaveTheSameBitsOfImagesThatAreRepeated) {
  expect_bits_of_serial_executor(workload({.depth = 18, .width = 8}, /*times=*/2), kSeed,
                                 /*num_replicas=*/2);
}

TEST_F(ResNetRanks, TheCutModelIsTheModel) {
  const auto make = workload({.depth = 18, .width = 8});
  const Workload one = train::construct(make, kSeed);
  const train::BatchReader reader(one.training, one.model);
  const graph::Graph graph = record::record(one.model, reader.maker(), graph::Mode::kTrain).graph;
  EXPECT_EQ(std::ranges::count(graph.nodes, "trireme::batch_norm", &graph::Node::op), 20)
      << "a norm, the sum and the ReLU behind it are one node";
  EXPECT_EQ(std::ranges::count(graph.nodes, "aten::relu", &graph::Node::op), 0);
  const auto plan = layout::make_manual_plan(graph, graph::graph_sha256(graph),
                                             layout::even_cuts(graph, 2), {8, 4, 1});
  for (const Comparison& result : train::verify(make, plan, {.optimizer = {.name = "lars"}})) {
    EXPECT_TRUE(result.passes()) << result.against << ": " << result.first_difference;
  }
}

TEST_F(ResNetRanks, LabelsAreSmoothedInTrainingAlone) {
  const Workload one = train::construct(workload({.depth = 18, .width = 8}), kSeed);
  const train::BatchReader reader(one.training, one.model);
  const Batch batch = reader.read({.begin = 0, .end = 12});
  one.model.forward(batch);  // statistics
  one.model.set_training(true);
  const Losses training = one.model.forward(batch);
  one.model.set_training(false);
  const Losses evaluation = one.model.forward(batch);
  ASSERT_EQ(evaluation.size(), 2U) << "of three classes, the best five are all";
  EXPECT_EQ(evaluation[1].name, "top1");
  EXPECT_EQ(evaluation[1].coefficient, 0);
  const double right = 12 * evaluation[1].value.item<double>();
  EXPECT_NEAR(right, std::round(right), 1e-5);
  EXPECT_NEAR(training[0].value.item<double>(), std::log(3), 0.5);
  for (const double smoothing : {-0.1, 1.0, std::nan("")}) {
    EXPECT_THROW(make_classification({.depth = 18, .width = 8}, {}, smoothing), Error);
  }
}

}  // namespace
}  // namespace trireme::recipes::resnet50
