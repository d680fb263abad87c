#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <vector>

#include "tests/models/models.h"
#include "tests/wire/endpoint/ranks.h"
#include "trireme/engine/parameters/lane_accumulator.h"
#include "trireme/engine/record/recording.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/manual_plan.h"
#include "trireme/wire/collectives/group.h"
#include "trireme/wire/endpoint/sim/world.h"

namespace trireme::parameters::test {

inline layout::Plan plan_of(const graph::Graph& graph, int num_replicas) {
  layout::Plan plan = layout::make_manual_plan(graph, graph::graph_sha256(graph), {}, {24, 1, 12});
  layout::set_replicas(plan, num_replicas);
  plan.bucket_bytes = 1;
  return plan;
}

/// One replica: a model and its sums, a bucket per parameter.
struct Replica {
  int num_replicas = 1;
  Dtype dtype = Dtype::kF32;  ///< Of gradients.
  models::TestModel test = models::make("mlp");
  record::Recording recording = record::record(test.model, test.make_batch, graph::Mode::kTrain);
  ParameterStore store{
      layout::make_parameter_map(recording.graph, plan_of(recording.graph, num_replicas)),
      recording.graph,
      recording.tensors,
      {}};
  LaneAccumulator sums{store, recording.graph, 1, {.dtype = dtype}};
  int num_buckets = static_cast<int>(store.map().buckets.size());
};

/// Runs it as each of the replicas.
inline void run(int num_replicas,
                const std::function<void(Replica&, collectives::Group&, int)>& body,
                Dtype dtype = Dtype::kF32) {
  auto endpoints = transport::make_sim_world(
      num_replicas, {.seed = 1, .max_delay = std::chrono::microseconds(200)});
  std::vector<std::unique_ptr<Replica>> replicas;
  std::vector<int> ranks;
  for (int rank = 0; rank < num_replicas; ++rank) {
    replicas.push_back(std::unique_ptr<Replica>(new Replica{num_replicas, dtype}));
    ranks.push_back(rank);
  }
  transport::test::expect_no_errors(transport::test::run_threads(num_replicas, [&](int rank) {
    collectives::Group group(*endpoints[rank], ranks,
                             {.name = "data", .id = 1, .deadline = std::chrono::seconds(20)});
    body(*replicas[rank], group, rank);
  }));
}

}  // namespace trireme::parameters::test
