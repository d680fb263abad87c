#include "trireme/engine/program/stage_regions.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/models/models.h"
#include "trireme/engine/program/step_losses.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/choose_regions.h"
#include "trireme/plan/layout/manual_plan.h"

namespace trireme::program {
namespace {

constexpr std::int64_t kRows = 3;

/// Counts gradients by site.
class Counter : public GradientSink {
 public:
  void accept(int site, const at::Tensor& /*gradient*/) override { ++num_of[site]; }
  std::map<int, int> num_of;
};

/// A model as one stage that recomputes.
struct Divided {
  Divided(const std::string& name, int num_regions, bool offload = false)
      : Divided(models::make(name)) {
    layout::Stage& whole = plan.stages[0];
    whole.offload = offload;
    whole.regions = layout::even_regions(recording.graph, plan, 0, num_regions);
    stage.emplace(recording, plan, 0, sites);
  }

  Divided(models::TestModel made, const std::vector<int>& regions) : Divided(std::move(made)) {
    plan.stages[0].regions = regions;
    stage.emplace(recording, plan, 0, sites);
  }

  explicit Divided(models::TestModel made)
      : test(std::move(made)),
        recording(record::record(test.model, test.make_batch, graph::Mode::kTrain)) {
    plan = layout::make_manual_plan(recording.graph, graph::graph_sha256(recording.graph), {},
                                    {kRows, kRows, 1});
    plan.stages[0].recompute = true;
  }

  StageRun forward(std::uint64_t seed) {
    return stage->forward({test.make_batch(kRows, seed), {kRows}, {1, 0, 0}}, {});
  }

  ValueMap seeds() const {
    return loss_seeds(recording.graph, *stage, 1,
                      std::vector<double>(recording.graph.losses.size(), 1.0));
  }

  models::TestModel test;
  record::Recording recording;
  layout::Plan plan;
  Counter sink;
  SiteTable sites{recording, sink};
  std::optional<StageProgram> stage;
};

// Of three layers with their activations the first two regions hand on a tensor each; all else is made again.
TEST(StageRegions, AMicrobatchKeepsFieldsAndWhatGoesFromRegionToRegion) {
  Divided divided("mlp", 3);
  ASSERT_EQ(divided.plan.stages[0].regions.size(), 2U);
  const StageRun run = divided.forward(9);
  ASSERT_NE(run.regions, nullptr);
  EXPECT_EQ(run.regions->kept.size(), 2U);
  EXPECT_EQ(run.regions->fields.size(), 2U);
  EXPECT_TRUE(run.roots.empty());
  for (const auto& [value, tensor] : run.regions->kept) {
    EXPECT_FALSE(tensor.requires_grad());
    EXPECT_EQ(static_cast<std::size_t>(tensor.numel() * tensor.element_size()),
              tensor.storage().nbytes());
  }
  for (std::size_t slot = 0; slot < run.slots.tensors.size(); ++slot) {
    const at::Tensor& tensor = run.slots.tensors[slot];
    EXPECT_TRUE(!tensor.defined() || tensor.numel() == 1) << "slot " << slot;
  }
}

TEST(StageRegions, ABackwardTakesWhatIsKeptAndGivesEachSiteOneGradient) {
  Divided divided("transformer", 4);
  StageRun run = divided.forward(9);
  EXPECT_TRUE(divided.stage->backward_inputs(run, divided.seeds()).empty());
  for (const auto& [value, tensor] : run.regions->kept) EXPECT_FALSE(tensor.defined()) << value;
  for (const auto& [field, tensor] : run.regions->fields) EXPECT_FALSE(tensor.defined()) << field;
  EXPECT_EQ(run.regions->waiting.size(), 4U);
  divided.stage->backward_weights(std::move(run));
  EXPECT_FALSE(divided.sink.num_of.empty());
  for (const auto& [site, num] : divided.sink.num_of) EXPECT_EQ(num, 1) << "site " << site;
}

TEST(StageRegions, AFileHoldsAllThatIsKept) {
  Divided divided("transformer", 3, true);
  StageRun run = divided.forward(9);
  const ValueMap before = run.regions->kept;
  ASSERT_FALSE(before.empty());
  StageProgram::offload(run, testing::TempDir());
  for (const auto& [value, tensor] : run.regions->kept) EXPECT_FALSE(tensor.defined());
  for (const auto& [field, tensor] : run.regions->fields) EXPECT_FALSE(tensor.defined());
  StageProgram::fetch(run);
  for (const auto& [value, tensor] : run.regions->kept) {
    EXPECT_TRUE(at::equal(tensor, before.at(value)));
  }
  EXPECT_TRUE(divided.stage->backward(std::move(run), divided.seeds()).empty());
  EXPECT_FALSE(divided.sink.num_of.empty());
}

TEST(StageRegions, EachIsCaptured) {
  Divided divided("mlp", 3);
  for (const std::uint64_t seed : {1, 2, 3}) {
    divided.stage->backward(divided.forward(seed), divided.seeds());
  }
  const CaptureReport report = divided.stage->capture_report();
  EXPECT_EQ(report.num_replayed, 3) << (report.refusals.empty() ? "" : report.refusals[0]);
}

/// Of what the first product makes a later region needs the first columns alone.
models::TestModel narrowed() {
  const at::Tensor first = torch::randn({4, 64}).requires_grad_();
  const at::Tensor second = torch::randn({8, 2}).requires_grad_();
  models::TestModel test;
  test.model.parameters = {{"first", first}, {"second", second}};
  test.model.forward = [first, second](const Batch& batch) -> Losses {
    const at::Tensor part = torch::mm(batch["x"], first).narrow(1, 0, 8);
    return {mean_loss(torch::mm(part, second).mean())};
  };
  test.make_batch = [](std::int64_t samples, std::uint64_t /*seed*/) {
    Batch batch;
    batch.set("x", torch::ones({samples, 4}));
    return batch;
  };
  return test;
}

TEST(StageRegions, APartOfATensorIsKeptWithoutTheRest) {
  Divided divided(narrowed(), std::vector<int>{2});
  const StageRun run = divided.forward(1);
  ASSERT_EQ(run.regions->kept.size(), 1U);
  const at::Tensor& part = run.regions->kept.begin()->second;
  EXPECT_EQ(part.sizes(), (std::vector<std::int64_t>{kRows, 8}));
  EXPECT_EQ(part.strides(), (std::vector<std::int64_t>{64, 1})) << "kernels may depend on them";
  EXPECT_EQ(part.storage().nbytes(), ((kRows - 1) * 64 + 8) * sizeof(float));
}

}  // namespace
}  // namespace trireme::program
