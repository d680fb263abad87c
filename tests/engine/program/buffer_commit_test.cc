#include "trireme/engine/program/buffer_commit.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <vector>

#include "trireme/model.h"

namespace trireme::program {
namespace {

/// A batch norm that averages over all batches so far (momentum: none), recorded.
struct Norm {
  torch::nn::BatchNorm1d module{torch::nn::BatchNorm1dOptions(2).momentum(std::nullopt)};
  Model model = make_model(module.ptr(), [this](const Batch& batch) {
    return module->forward(batch["x"]).square().mean();
  });
  record::Recording recording = record::record(
      model,
      [](std::int64_t size, std::uint64_t) {
        Batch batch;
        batch.set("x", torch::randn({size, 2}));
        return batch;
      },
      graph::Mode::kTrain);
};

/// Statistics of one node, by microbatch; an empty batch is of a microbatch that the step does not have.
std::vector<std::vector<NormStatistics>> statistics_of(const Norm& norm,
                                                       const std::vector<at::Tensor>& batches) {
  std::vector<std::vector<NormStatistics>> all;
  for (const at::Tensor& batch : batches) {
    all.emplace_back();
    if (!batch.defined()) continue;
    for (const graph::Node& node : norm.recording.graph.nodes) {
      if (node.op.find("batch_norm") == std::string::npos) continue;
      all.back().push_back({node.id, batch.mean(0), batch.to(at::kDouble).var(0, true)});
    }
    EXPECT_EQ(all.back().size(), 1U);
  }
  return all;
}

// Replicas leave out the last microbatches of a smaller step, so that holes are in the middle.
TEST(BufferCommits, MicrobatchesThatAStepDoesNotHaveCountForNothing) {
  const at::Tensor a = torch::randn({4, 2}), b = torch::randn({4, 2});
  torch::nn::BatchNorm1d plain(torch::nn::BatchNorm1dOptions(2).momentum(std::nullopt));
  plain->forward(a);
  plain->forward(b);
  Norm norm;
  const BufferCommits commits(norm.recording, 4);
  commits.fold(statistics_of(norm, {a, {}, {}, b, {}}));
  commits.count(2);
  EXPECT_TRUE(torch::allclose(norm.module->running_mean, plain->running_mean));
  EXPECT_TRUE(torch::allclose(norm.module->running_var, plain->running_var));
  EXPECT_EQ(norm.module->num_batches_tracked.item<std::int64_t>(), 2);
}

}  // namespace
}  // namespace trireme::program
