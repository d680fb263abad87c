// SSD through the library: recorded, cut, trained by ranks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "recipes/ssd/detection.h"
#include "tests/base/test_folder.h"
#include "tests/recipes/rank_bits.h"
#include "tests/recipes/ssd/painted_shapes.h"

namespace trireme::recipes::ssd {
namespace {

constexpr std::uint64_t kSeed = 3;

class SsdRanks : public test::TestFolder {
 protected:
  SsdRanks() { write_shapes(folder, 16); }

  MakeWorkload workload(vision::SsdConfig config) const {
    config.size = 32;
    config.num_classes = 3;
    const auto images = vision::open_boxed_images(folder, folder / "instances.json");
    const vision::BoxedImageOptions view{
        .size = 32, .random = vision::BoxedViewOptions{}, .max_boxes = images.most_boxes()};
    const DetectionData data{.training = std::make_shared<vision::BoxedImageSource>(images, view)};
    return [config, data] { return make_detection(config, data); };
  }
};

TEST_F(SsdRanks, HaveTheBitsOfTheSerialExecutor) {
  expect_bits_of_serial_executor(workload({.depth = 18, .width = 8}), kSeed, /*num_replicas=*/1);
  expect_bits_of_serial_executor(workload({.depth = 18, .width = 8, .is_channels_last = true}),
                                 kSeed, /*num_replicas=*/2);
}

TEST_F(SsdRanks, TheCutModelIsTheModel) {
  const auto make = workload({.depth = 18, .width = 8});
  const Workload one = train::construct(make, kSeed);
  const train::BatchReader reader(one.training, one.model);
  const graph::Graph graph = record::record(one.model, reader.maker(), graph::Mode::kTrain).graph;
  EXPECT_EQ(std::ranges::count(graph.nodes, "trireme::ssd_loss", &graph::Node::op), 1);
  const auto plan = layout::make_manual_plan(graph, graph::graph_sha256(graph),
                                             layout::even_cuts(graph, 2), {8, 4, 1});
  for (const Comparison& result :
       train::verify(make, plan, {.num_steps = 1, .optimizer = {.name = "sgd"}})) {
    EXPECT_TRUE(result.passes()) << result.against << ": " << result.first_difference;
  }
}

}  // namespace
}  // namespace trireme::recipes::ssd
