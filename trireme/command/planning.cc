#include "trireme/command/planning.h"

#include <fmt/format.h>

#include <memory>

#include "trireme/base/error.h"
#include "trireme/command/forecasts.h"
#include "trireme/engine/measure/detect_topology.h"
#include "trireme/engine/measure/measure_profile.h"
#include "trireme/engine/train/replica_buffers.h"
#include "trireme/engine/train/step_reader.h"
#include "trireme/plan/graph/json.h"
#include "trireme/plan/layout/manual.h"
#include "trireme/plan/layout/planned_graph.h"
#include "trireme/plan/partition/explain.h"
#include "trireme/plan/partition/replicas.h"

namespace trireme::command {
namespace {

/// The optimizer's update as the measurement calls it.
measure::UpdateFunction update_of(const train::OptimizerOptions& options) {
  const std::shared_ptr<optim::Optimizer> optimizer = train::make_optimizer(options);
  return [optimizer, rate = options.learning_rate](const at::Tensor& value,
                                                   const at::Tensor& gradient) {
    constexpr std::int64_t kRows = 1024;
    optimizer->update({"measured", value, gradient, {kRows, value.numel() / kRows}}, rate);
  };
}

/// What ranks must have in common: their measurements become one profile.
std::string shared_text(const MeasureOptions& options) {
  return train::to_text({.seed = options.seed, .optimizer = options.optimizer}) +
         fmt::format("microbatch {}\ndevice memory {}\n", options.microbatch,
                     options.device_memory_bytes);
}

/// Says which ranks have nothing to do.
std::string idle_text(const layout::Plan& plan, const topology::Topology& topology) {
  const int num_used = layout::train_role(plan).mesh.num_ranks();
  const int num_ranks = static_cast<int>(topology.ranks.size());
  if (num_used == num_ranks) return "";
  return fmt::format(
      "\nthe plan uses {} of the {} ranks, the others stay idle; start it with as many\n", num_used,
      num_ranks);
}

}  // namespace

Measurement measure(const Workload& workload, const record::Recording& recorded,
                    const MeasureOptions& options, const collectives::World* world) {
  const train::StepReader reader(
      workload, {.global_batch = options.microbatch, .microbatch = options.microbatch, .lanes = 1},
      options.seed);
  const Batch batch = reader.read(0, 0);
  std::unique_ptr<collectives::Group> group;
  measure::BusyRanks ranks;
  if (world != nullptr) {
    collectives::require_same(*world, graph::graph_sha256(recorded.graph), "model");
    collectives::require_same(*world, shared_text(options), "options of the profile");
    group = collectives::make_world_group(*world, "profile");
    ranks = measure::BusyRanks(*group, world->watch);
  }
  profile::Profile profile = measure::measure_profile(
      {.recording = recorded, .batch = batch, .ranks = ranks},
      world == nullptr ? nullptr : &world->endpoint, {.update = update_of(options.optimizer)});
  topology::Topology topology =
      measure::detect_topology(ranks, {.device_memory_bytes = options.device_memory_bytes});
  return {std::move(profile), std::move(topology)};
}

Decision decide(const graph::Graph& graph, const Measurement& measurement,
                const PlanOptions& wanted, const DecideOptions& options) {
  const auto& [profile, topology] = measurement;
  if (!wanted.copies.empty()) {
    throw Error(ErrorKind::kInvalidArgument,
                "--copy is for plans by hand; with a profile, copies are chosen");
  }
  partition::PartitionOptions asked{.batch = wanted.batch,
                                    .replicas = wanted.replicas,
                                    .may_copy = options.may_copy,
                                    .copied_nodes = options.copied_nodes,
                                    .objective = options.objective == "memory"
                                                     ? partition::Objective::kMemory
                                                     : partition::Objective::kSpeed,
                                    .stages = wanted.stages,
                                    .may_idle = options.may_idle,
                                    .schedule = wanted.schedule,
                                    .device_memory_bytes = options.device_memory_bytes,
                                    .max_slowdown = options.max_slowdown};
  asked.batch.microbatch = profile.microbatch;
  asked.forecast = forecast_options(options.optimizer);
  asked.forecast.program.tolerant = options.tolerant;
  asked.may_replicate = train::why_one_replica(graph, options.buffers).empty();
  for (const std::string& cut : wanted.cuts) asked.cuts.push_back(node_position(graph, cut));
  Decision decision{partition::partition_over_replicas(graph, profile, topology, asked), ""};
  const graph::Graph planned = layout::planned_graph(graph, decision.plan);
  train::check_buffers(planned, options.buffers, layout::train_role(decision.plan).mesh.data);
  decision.text =
      partition::explain(planned, decision.plan,
                         forecast(planned, decision.plan, profile, topology, options.optimizer)) +
      idle_text(decision.plan, topology);
  return decision;
}

}  // namespace trireme::command
