#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "tests/engine/train/rank_threads.h"
#include "tests/models/models.h"
#include "trireme/engine/train/construct_workload.h"
#include "trireme/engine/train/verify_ranks.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/choose_regions.h"
#include "trireme/plan/layout/manual_plan.h"
#include "trireme/plan/layout/plan_check.h"
#include "trireme/plan/schedule/schedules.h"

namespace trireme::train {

/// The test model with 60 samples of its data.
inline MakeWorkload workload_of(const std::string& name) {
  return [name] {
    models::TestModel test = models::make(name);
    std::vector<std::pair<std::string, at::Tensor>> fields;
    const Batch samples = test.make_batch(60, 5);
    for (const auto& [field, tensor] : samples.tensors()) fields.emplace_back(field, tensor);
    return Workload{test.model, tensor_source(fields), nullptr};
  };
}

struct Layout {
  std::string model;
  int stages = 1;
  int replicas = 1;
  int lanes = 4;
  std::string schedule = "simple";
  int stages_per_rank = 1;
  bool recomputes = false;         ///< Every stage that can.
  int regions = 1;                 ///< Of those.
  bool offloads = false;           ///< Every stage.
  bool shards_state = false;       ///< Replicas share the optimizer's state.
  bool shards_parameters = false;  ///< And values and gradients.
  Precision precision = Precision::kF32;
  Dtype gradients = Dtype::kF32;  ///< TrainingOptions::gradient_dtype.
  std::vector<int> each = {};     ///< By position: replicas that each rank runs; empty: one.

  int num_ranks() const { return 1 + placement().back(); }

  std::vector<int> placement() const {
    std::vector<int> ranks;
    int next = 0;
    for (int p = 0; p < stages / stages_per_rank; ++p) {
      const int num = each.empty() ? 1 : each[p];
      for (int r = 0; r < replicas; r += num) ranks.insert(ranks.end(), num, next++);
    }
    return ranks;
  }
};

inline MakeWorkload workload_of(const Layout& layout) {
  return with_precision(workload_of(layout.model), layout.precision);
}

inline void PrintTo(const Layout& layout, std::ostream* out) {
  *out << layout.model << " " << layout.stages << "x" << layout.replicas << " lanes "
       << layout.lanes << " " << layout.schedule << ", " << layout.stages_per_rank
       << " stages a rank"
       << (layout.recomputes ? ", recomputing in " + std::to_string(layout.regions) + " regions"
                             : "")
       << (layout.offloads ? ", offloading" : "") << (layout.shards_state ? ", sharding state" : "")
       << (layout.shards_parameters ? ", sharding parameters" : "")
       << (layout.precision == Precision::kBf16  ? ", bf16"
           : layout.precision == Precision::kF16 ? ", f16"
                                                 : "")
       << (layout.gradients == Dtype::kBf16 ? ", bf16 gradients" : "");
  for (const int num : layout.each)
    *out << (&num == layout.each.data() ? ", ranks run " : " ") << num;
}

inline layout::Plan plan_of(const Layout& layout, const MakeWorkload& make) {
  const Workload workload = construct(make, 3);
  const auto recorded =
      record::record(workload.model, BatchReader(workload.training, workload.model).makers(),
                     {.sizes = BatchSizes::kAny});
  layout::Plan plan = layout::make_manual_plan(recorded.graph, graph::graph_sha256(recorded.graph),
                                               layout::even_cuts(recorded.graph, layout.stages),
                                               {24, 2, layout.lanes});
  plan.schedule.name = layout.schedule;
  schedule::deal_out_stages(plan, layout.stages_per_rank);
  layout::set_replicas(plan, layout.replicas);
  plan.roles[0].placement = layout.placement();
  plan.sharded_state = layout.shards_state || layout.shards_parameters;
  plan.sharded_parameters = layout.shards_parameters;
  for (int s = 0; layout.recomputes && s < layout.stages; ++s) {
    plan.stages[s].recompute = layout::why_not_recomputed(recorded.graph, plan, s).empty();
    if (!plan.stages[s].recompute) continue;
    plan.stages[s].regions = layout::even_regions(recorded.graph, plan, s, layout.regions);
  }
  for (layout::Stage& stage : plan.stages) stage.offload = layout.offloads;
  return plan;
}

inline layout::Plan plan_of(const Layout& layout) { return plan_of(layout, workload_of(layout)); }

/// Expects some steps under the layout, its ranks as threads, to be those of the serial executor.
///
/// tie_owners   of the plan.
inline void expect_bits_of_serial_executor(const Layout& layout,
                                           std::vector<layout::TieOwner> tie_owners = {},
                                           std::int64_t num_steps = 2) {
  const bool has_bf16_lstm = layout.model == "tagger" && layout.precision != Precision::kF32;
  if (has_bf16_lstm && !__builtin_cpu_supports("avx512bw")) {
    GTEST_SKIP() << "torch has no LSTM in bf16 for this processor";
  }
  layout::Plan plan = plan_of(layout);
  plan.tie_owners = std::move(tie_owners);
  const ComparedSteps options{.num_steps = num_steps,
                              .seed = 3,
                              .optimizer = {.learning_rate = 0.01, .clip_norm = 0.5},
                              .gradient_dtype = layout.gradients};
  const reference::RunRecord reference = run_serial(workload_of(layout), plan, options);
  run_ranks(layout.num_ranks(), [&](const collectives::World& world) {
    const Comparison result = verify_rank(world, workload_of(layout), plan, options, reference);
    EXPECT_EQ(first_difference(world, result), "") << testing::PrintToString(layout);
  });
}

/// Expects three steps of each optimizer under the layout, its ranks as threads, to be those of the serial executor.
inline void expect_bits_of_one(const Layout& layout, const std::vector<std::string>& optimizers) {
  const layout::Plan plan = plan_of(layout);
  for (const std::string& optimizer : optimizers) {
    const ComparedSteps options{
        .num_steps = 3,
        .seed = 3,
        .optimizer = {
            .name = optimizer, .learning_rate = 0.01, .weight_decay = 0.01, .clip_norm = 0.1}};
    const reference::RunRecord reference = run_serial(workload_of(layout.model), plan, options);
    run_ranks(layout.num_ranks(), [&](const collectives::World& world) {
      const Comparison result =
          verify_rank(world, workload_of(layout.model), plan, options, reference);
      EXPECT_EQ(first_difference(world, result), "") << optimizer;
    });
  }
}

struct Replicas {
  int replicas;
  int lanes;
};
inline constexpr Replicas kReplicas[] = {{1, 4}, {2, 4}, {4, 4}, {1, 6}, {3, 6}};
inline constexpr const char* kSchedules[] = {"simple", "interleaved", "zero_bubble"};
inline constexpr const char* kVirtualSchedules[] = {"simple", "interleaved", "zero_bubble",
                                                    "v_half", "v_min"};

}  // namespace trireme::train
