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
    const program::ValueMap seeds =
        program::loss_seeds(recording_.graph, stage, samples_,
                            std::vector<double>(recording_.graph.losses.size(), 1.0));
    HeldBytes held;
    for (int microbatch = 0; microbatch < 3; ++microbatch) {
      const std::int64_t before = memory::memory_use().live_bytes;
      memory::reset_peak();
      program::StageRun run = stage.forward({batch(), {samples_}, {1, 0, 0}}, {});
      held.kept = memory::memory_use().live_bytes - before;
      held.forward_peak = memory::memory_use().peak_bytes - before;
      memory::reset_peak();
      stage.backward(std::move(run), seeds);
      held.backward_peak = memory::memory_use().peak_bytes - before;
    }
    return held;
  }

  /// Fields of the batch are counted apart from what a forward holds.
  HeldBytes forecast() const {
    const auto tensors = simulate::stage_tensors(recording_.graph, plan_, profile_)[0];
    const Batch samples = batch();
    std::int64_t fields = 0;
    for (const auto& [name, tensor] : samples.tensors()) {
      fields += static_cast<std::int64_t>(tensor.nbytes());
    }
    return {tensors.kept, tensors.forward_peak + fields, tensors.backward_peak};
  }

 private:
  Batch batch() const { return test_.make_batch(samples_, 100); }

  models::TestModel test_;
  std::int64_t samples_;
  record::Recording recording_;
  layout::Plan plan_;
  profile::Profile profile_;
};

/// Never more than the forecast, but for what replays lay out side by side; autograd lets go of some things earlier than it says.
void expect_within(const std::string& what, std::int64_t measured, std::int64_t forecast) {
  constexpr double kLeast = 0.8, kMost = 1.02;
  constexpr double kBlock = 64 << 10;  // Of small buffers.
  const auto bytes = static_cast<double>(measured), most = static_cast<double>(forecast);
  EXPECT_LE(bytes, kMost * most + kBlock) << what;
  EXPECT_GE(bytes, kLeast * most) << what;
}

TEST(RecomputedMemory, IsAsForecastWholeAndInRegions) {
  for (const std::string name : {"transformer", "unet"}) {
    WholeModel model(name, 256);
    std::int64_t whole = 0, in_regions = 0;
    for (const int num_regions : {1, 2, 4}) {
      ASSERT_EQ(model.set_regions(num_regions), num_regions) << name;
      const HeldBytes forecast = model.forecast();
      for (const auto capture : {program::Capture::kOff, program::Capture::kOn}) {
        SCOPED_TRACE(name + " in " + std::to_string(num_regions) +
                     (capture == program::Capture::kOn ? ", captured" : ""));
        const HeldBytes held = model.measure(capture);
        EXPECT_EQ(held.kept, forecast.kept + static_cast<std::int64_t>(sizeof(float)))
            << "and the loss";
        expect_within("forward", held.forward_peak, forecast.forward_peak);
        expect_within("backward", held.backward_peak, forecast.backward_peak);
        (num_regions == 1 ? whole : in_regions) = held.backward_peak;
      }
    }
    EXPECT_LT(in_regions, whole * 9 / 10) << name;
  }
}

}  // namespace
}  // namespace trireme::train
