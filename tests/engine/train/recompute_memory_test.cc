// What a microbatch holds in a stage that recomputes is what the forecast says.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/models/models.h"
#include "trireme/engine/measure/node_measure.h"
#include "trireme/engine/memory/process_memory.h"
#include "trireme/engine/program/stage_program.h"
#include "trireme/engine/program/step_losses.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/choose_regions.h"
#include "trireme/plan/layout/manual_plan.h"
#include "trireme/plan/simulate/stage_tensors.h"

namespace trireme::train {
namespace {

class LetGo : public program::GradientSink {
 public:
  void accept(int /*site*/, const at::Tensor& /*gradient*/) override {}
};

/// Bytes beyond those before a microbatch: after its forward, most in it, most in its backward.
struct HeldBytes {
  std::int64_t kept = 0, forward_peak = 0, backward_peak = 0;
};

/// A model whose activations are most of its memory, as one stage that recomputes.
class WholeModel {
 public:
  WholeModel(const std::string& name, std::int64_t samples)
      : test_((memory::apply_torch_settings(), models::make(name))),
        samples_(samples),
        recording_(record::record(test_.model, test_.make_batch, graph::Mode::kTrain)),
        plan_(layout::make_manual_plan(recording_.graph, graph::graph_sha256(recording_.graph), {},
                                       {samples, samples, 1})) {
    plan_.stages[0].recompute = true;
    measure::BusyRanks ranks;
    measure::NodeCosts costs =
        measure::measure_nodes({recording_, batch(), ranks}, {.max_repeats = 1, .min_time = {}});
    profile_.microbatch = samples;
    profile_.costs = std::move(costs.costs);
    profile_.cost_of = std::move(costs.cost_of);
  }

  /// Returns what was chosen.
  int set_regions(int num_regions) {
    plan_.stages[0].regions = layout::even_regions(recording_.graph, plan_, 0, num_regions);
    return static_cast<int>(plan_.stages[0].regions.size()) + 1;
  }

  /// Of a third microbatch: where captures are on, it is replayed.
  HeldBytes measure(program::Capture capture) const {
    LetGo sink;
    const program::SiteTable sites(recording_, sink);
    const program::StageProgram stage(recording_, plan_, 0, sites, capture);
    const Batch samples = batch();
    const program::ValueMap seeds =
        program::loss_seeds(recording_.graph, stage, samples_,
                            std::vector<double>(recording_.graph.losses.size(), 1.0));
    HeldBytes held;
    for (int microbatch = 0; microbatch < 3; ++microbatch) {
      const std::int64_t before = memory::memory_use().live_bytes;
      memory::reset_peak();
      program::StageRun run = stage.forward({samples, {samples_}, {1, 0, 0}}, {});
      held.kept = memory::memory_use().live_bytes - before;
      held.forward_peak = memory::memory_use().peak_bytes - before;
      memory::reset_peak();
      stage.backward(std::move(run), seeds);
      held.backward_peak = memory::memory_use().peak_bytes - before;
    }
    return held;
  }

  /// Of tensors that lie in memory for the microbatch alone: its fields do anyway.
  HeldBytes forecast() const {
    const auto tensors = simulate::stage_tensors(recording_.graph, plan_, profile_)[0];
    const Batch samples = batch();
    std::int64_t fields = 0;
    for (const auto& [name, tensor] : samples.tensors()) {
      fields += static_cast<std::int64_t>(tensor.nbytes());
    }
    return {tensors.kept - fields, tensors.forward_peak, tensors.backward_peak};
  }

 private:
  Batch batch() const { return test_.make_batch(samples_, 100); }

  models::TestModel test_;
  std::int64_t samples_;
  record::Recording recording_;
  layout::Plan plan_;
  profile::Profile profile_;
};

TEST(RecomputedMemory, IsAsForecastWholeAndInRegions) {
  constexpr double kPart = 0.03;  // And small buffers share a block, where a stage is captured.
  constexpr double kBlock = 64 << 10;
  for (const char* name : {"mlp", "transformer", "unet"}) {
    WholeModel model(name, 256);
    std::int64_t whole = 0;
    for (const int num_regions : {1, 2, 4}) {
      ASSERT_EQ(model.set_regions(num_regions), num_regions) << name;
      const HeldBytes forecast = model.forecast();
      for (const auto capture : {program::Capture::kOff, program::Capture::kOn}) {
        SCOPED_TRACE(std::string(name) + " in " + std::to_string(num_regions) +
                     (capture == program::Capture::kOn ? ", captured" : ""));
        const HeldBytes held = model.measure(capture);
        const auto expect_near = [&](std::int64_t measured, std::int64_t expected) {
          const auto most = static_cast<double>(expected);
          EXPECT_NEAR(static_cast<double>(measured), most, kPart * most + kBlock);
        };
        expect_near(held.kept, forecast.kept);
        expect_near(held.forward_peak, forecast.forward_peak);
        expect_near(held.backward_peak, forecast.backward_peak);
        if (num_regions == 1) whole = held.backward_peak;
      }
    }
    EXPECT_LT(model.forecast().backward_peak, whole * 9 / 10) << name;
  }
}

}  // namespace
}  // namespace trireme::train
