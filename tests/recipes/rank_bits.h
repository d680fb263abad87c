#pragma once

#include <gtest/gtest.h>

#include "tests/engine/train/rank_threads.h"
#include "trireme/engine/train/construct_workload.h"
#include "trireme/engine/train/verify_plan.h"
#include "trireme/engine/train/verify_ranks.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/manual_plan.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::recipes {

/// Two steps of AdamW on two stages x so many replicas, as threads, against the serial executor.
inline void expect_bits_of_serial_executor(const MakeWorkload& make, std::uint64_t seed,
                                           int num_replicas = 2) {
  const Workload workload = train::construct(make, seed);
  const train::BatchReader reader(workload.training, workload.model);
  const graph::Graph graph =
      record::record(workload.model, reader.makers(), {.sizes = BatchSizes::kAny}).graph;
  layout::Plan plan = layout::make_manual_plan(graph, graph::graph_sha256(graph),
                                               layout::even_cuts(graph, 2), {16, 4, 4});
  layout::set_replicas(plan, num_replicas);
  const train::ComparedSteps options{
      .num_steps = 2, .seed = seed, .optimizer = {.name = "adamw", .learning_rate = 0.01}};
  const reference::RunRecord reference = train::run_serial(make, plan, options);
  train::run_ranks(2 * num_replicas, [&](const collectives::World& world) {
    const Comparison result = train::verify_rank(world, make, plan, options, reference);
    EXPECT_EQ(train::first_difference(world, result), "");
  });
}

}  // namespace trireme::recipes
