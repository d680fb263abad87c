#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/engine/train/rank_threads.h"
#include "tests/random_nets/random_net.h"
#include "trireme/engine/train/construct_workload.h"
#include "trireme/engine/train/replica_buffers.h"
#include "trireme/engine/train/verify_ranks.h"
#include "trireme/error.h"
#include "trireme/plan/graph/cuts.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/choose_regions.h"
#include "trireme/plan/layout/manual_plan.h"
#include "trireme/plan/layout/plan_check.h"
#include "trireme/plan/schedule/schedules.h"

namespace trireme::train {

/// A plan of four microbatches a replica that the seed picks: cuts anywhere, schedule, stages on a rank, replicas, what
/// recomputes, offloads or is in shards. Nothing where the graph has too few cuts.
inline std::optional<layout::Plan> random_plan(const graph::Graph& graph, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto pick = [&](int count) {
    return static_cast<int>(random() % static_cast<std::uint64_t>(count));
  };
  const int replicas = train::why_one_replica(graph, {}).empty() ? 1 + pick(2) : 1;
  const int each = 1 + pick(2), num_ranks = 1 + pick(3);
  const std::vector<bool> allowed = graph::allowed_cuts(graph);
  std::vector<int> all, cuts;
  for (int cut = 0; cut < std::ssize(allowed); ++cut) {
    if (allowed[cut]) all.push_back(cut);
  }
  if (std::ssize(all) < each * num_ranks - 1) return std::nullopt;
  std::ranges::sample(all, std::back_inserter(cuts), each * num_ranks - 1, random);
  const std::int64_t microbatches = 4 * replicas;
  layout::Plan plan =
      layout::make_manual_plan(graph, graph::graph_sha256(graph), cuts,
                               {.global_batch = microbatches * random_nets::kMicrobatch,
                                .microbatch = random_nets::kMicrobatch,
                                .lanes = 2});
  const std::vector<std::string> names = schedule::schedule_names(each);
  plan.schedule.name = names[pick(static_cast<int>(names.size()))];
  schedule::deal_out_stages(plan, each);
  layout::set_replicas(plan, replicas);
  plan.bucket_bytes = pick(2) == 0 ? 1 : layout::kUsualBucketBytes;
  plan.sharded_parameters = pick(4) == 0;
  plan.sharded_state = plan.sharded_parameters || pick(3) == 0;
  for (int s = 0; s < std::ssize(plan.stages); ++s) {
    plan.stages[s].recompute = pick(3) == 0 && layout::why_not_recomputed(graph, plan, s).empty();
    plan.stages[s].offload = pick(4) == 0;
    if (plan.stages[s].recompute) {
      plan.stages[s].regions = layout::even_regions(graph, plan, s, 1 + pick(3));
    }
  }
  return plan;
}

inline std::string text_of(const layout::Plan& plan) {
  std::string text = plan.schedule.name + ", " +
                     std::to_string(layout::train_role(plan).mesh.data) + " replicas" +
                     (plan.sharded_state ? ", sharded state" : "") +
                     (plan.sharded_parameters ? " and parameters" : "");
  for (const layout::Stage& stage : plan.stages) {
    text += " | " + std::to_string(stage.begin) + " to " + std::to_string(stage.end) +
            (stage.recompute ? " recomputes in " + std::to_string(stage.regions.size() + 1) : "") +
            (stage.offload ? " offloads" : "");
  }
  return text;
}

/// Trains a random net by ranks as threads; whether it was compared: what the recorder or plain torch refuses, and what
/// has no plan, is not.
inline bool has_bits_of_serial_executor(std::uint64_t seed) {
  const int num_operations = 4 + static_cast<int>(seed % 20);
  const MakeWorkload make = random_nets::make(seed, num_operations);
  const ComparedSteps steps{.num_steps = 2, .seed = 3, .optimizer = {.learning_rate = 0.01}};
  std::optional<layout::Plan> plan;
  reference::RunRecord reference;
  try {
    const Workload workload = construct(make, steps.seed);
    const record::Recording recorded =
        record::record(workload.model, BatchReader(workload.training, workload.model).maker(),
                       {.microbatch = random_nets::kMicrobatch, .sizes = steps.sizes});
    plan = random_plan(recorded.graph, seed);
    if (!plan) return false;
    reference = run_serial(make, *plan, steps);
  } catch (const std::exception&) {
    return false;
  }
  const int num_ranks = layout::train_role(*plan).num_ranks();
  try {
    run_ranks(num_ranks, [&](const collectives::World& world) {
      const Comparison result = verify_rank(world, make, *plan, steps, reference);
      EXPECT_EQ(first_difference(world, result), "")
          << "seed " << seed << ": " << text_of(*plan) << "\n"
          << random_nets::describe(seed, num_operations);
    });
  } catch (const std::exception& failure) {
    ADD_FAILURE() << "seed " << seed << ": " << text_of(*plan) << "\n"
                  << failure.what() << "\n"
                  << random_nets::describe(seed, num_operations);
  }
  return true;
}

/// Expects a third of the nets to be compared, all with the bits of one process.
inline void try_random_layouts(std::uint64_t first_seed, int count) {
  int num_compared = 0;
  for (int i = 0; i < count; ++i) {
    num_compared += has_bits_of_serial_executor(first_seed + static_cast<std::uint64_t>(i)) ? 1 : 0;
  }
  std::printf("%d of %d nets compared\n", num_compared, count);
  EXPECT_GE(3 * num_compared, count) << "too few are compared to say much";
}

}  // namespace trireme::train
