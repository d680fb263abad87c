#include "trireme/session/planning.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "trireme/base/environment.h"
#include "trireme/engine/measure/detect_topology.h"
#include "trireme/engine/measure/measure_profile.h"
#include "trireme/engine/measure/rank_speeds.h"
#include "trireme/engine/train/batch_reader.h"
#include "trireme/engine/train/construct_workload.h"
#include "trireme/engine/train/replica_buffers.h"
#include "trireme/error.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/choose_regions.h"
#include "trireme/plan/layout/manual_plan.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/layout/plan_check.h"
#include "trireme/plan/partition/explain.h"
#include "trireme/plan/partition/front.h"
#include "trireme/plan/partition/idle_ranks.h"
#include "trireme/plan/partition/partition.h"
#include "trireme/plan/schedule/schedule_json.h"
#include "trireme/plan/schedule/schedules.h"
#include "trireme/session/processors.h"
#include "trireme/session/training.h"

namespace trireme::session {
namespace {

/// The optimizer's update as the measurement calls it.
measure::UpdateFunction update_of(const OptimizerOptions& options) {
  const std::shared_ptr<parameters::Optimizer> optimizer = train::make_optimizer(options);
  return [optimizer, rate = options.learning_rate](const at::Tensor& value,
                                                   const at::Tensor& gradient) {
    constexpr std::int64_t kRows = 1024;
    parameters::update(*optimizer, {"measured", value, gradient, {kRows, value.numel() / kRows}},
                       {rate});
  };
}

/// TRIREME_MEASURE
bool measures_quickly() {
  const std::string value = process_variable("TRIREME_MEASURE").value_or("");
  if (value.empty() || value == "full" || value == "quick") return value == "quick";
  throw Error(ErrorKind::kInvalidArgument,
              fmt::format("TRIREME_MEASURE is 'full' or 'quick', not '{}'", value));
}

/// What ranks must have in common: their measurements become one profile.
std::string shared_text(const MeasureOptions& options) {
  return train::to_text(options.training) +
         fmt::format("microbatch {}\nthreads {}\ndevice memory {}\nmeasures files {}\nquickly {}\n",
                     options.microbatch, options.threads, options.device_memory_bytes,
                     options.files, measures_quickly());
}

int stages_per_rank(const PlanOptions& options) {
  return options.stages_per_rank > 0 ? options.stages_per_rank
                                     : schedule::least_stages_per_rank(options.schedule);
}

bool shards_state(const PlanOptions& options) {
  return options.shard_state || options.shard_parameters;
}

simulate::ForecastOptions forecast_options(const TrainingOptions& training) {
  return {.memory = {.optimizer_bytes_per_element =
                         train::optimizer_bytes_per_element(training.optimizer),
                     .gradient_dtype = train::checked_gradient_dtype(training)},
          .program = {.has_norm = true}};
}

/// As this training runs stages.
profile::Profile costs_of(const profile::Profile& measured, const TrainingOptions& training) {
  return training.capture ? measured : profile::without_captures(measured);
}

/// A node by its position or name, as a position. kInvalidArgument where there is none.
int node_position(const graph::Graph& graph, const std::string& node) {
  const bool is_number =
      !node.empty() && node.size() < 9 && node.find_first_not_of("0123456789") == std::string::npos;
  if (is_number) return std::stoi(node);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].name == node) return static_cast<int>(i);
  }
  throw Error(ErrorKind::kInvalidArgument,
              fmt::format("'{}' is neither a position nor the name of a node; `show` of the "
                          "graph lists both",
                          node));
}

/// Adafactor needs whole matrices, and an optimizer of the caller's whole gradients.
bool can_shard(const OptimizerOptions& optimizer) {
  return optimizer.name != "adafactor" && optimizer.name != train::kOwnOptimizer;
}

void refuse_by_hand(const PlanOptions& wanted) {
  if (!wanted.copies.empty()) {
    throw Error(ErrorKind::kInvalidArgument,
                "--copy is for plans by hand; with a profile, copies are chosen");
  }
  if (!wanted.schedule_file.empty()) {
    throw Error(ErrorKind::kInvalidArgument,
                "--schedule-file is for plans by hand; leave out the profile, and give --cut-at "
                "where stages are "
                "to begin");
  }
}

void refuse_without_costs(const PlanOptions& wanted) {
  const auto refuse = [](const std::string& option, const std::string& instead) {
    throw Error(ErrorKind::kInvalidArgument,
                option + " wants costs to decide by; measure, or give " + instead);
  };
  if (wanted.offload == Offload::kAuto) refuse("--offload auto", "--offload none or all");
  if (!wanted.stage_of.empty()) refuse("--stage-of", "--cut-at");
  if (wanted.balance != Balance::kSearch) refuse("--balance", "--cut-at");
  if (wanted.active_microbatches == 0 || wanted.schedule_file.empty()) return;
  throw Error(ErrorKind::kInvalidArgument,
              "a schedule of your own says itself how many microbatches are active; leave out "
              "--active-microbatches");
}

void check_threads(const profile::Profile& profile, const PlanOptions& wanted) {
  if (wanted.threads == 1 || wanted.threads == profile.threads) return;
  throw Error(ErrorKind::kInvalidArgument,
              fmt::format("the profile was measured with --threads {} and --threads says {} now; "
                          "measure with that, or "
                          "leave it out",
                          profile.threads, wanted.threads));
}

/// What the planner is asked for.
partition::PartitionOptions partition_options(const graph::Graph& graph,
                                              const profile::Profile& profile,
                                              const PlanOptions& wanted,
                                              const TrainingOptions& training,
                                              const PlannedCopies& copies) {
  refuse_by_hand(wanted);
  check_threads(profile, wanted);
  partition::PartitionOptions asked{.batch = wanted.batch,
                                    .replicas = wanted.replicas,
                                    .may_copy = wanted.may_copy && !copies,
                                    .may_reorder = wanted.may_reorder,
                                    .copied_nodes = copies,
                                    .objective = wanted.objective,
                                    .placement = wanted.placement,
                                    .stages = wanted.stages,
                                    .may_idle = wanted.may_idle,
                                    .schedule = wanted.schedule,
                                    .active_microbatches = wanted.active_microbatches,
                                    .recompute = wanted.recompute,
                                    .offload = wanted.offload,
                                    .shard_state = shards_state(wanted),
                                    .shard_parameters = wanted.shard_parameters,
                                    .stages_per_rank = stages_per_rank(wanted),
                                    .device_memory_bytes = wanted.device_memory_bytes,
                                    .max_slowdown = wanted.max_slowdown};
  asked.stage_of = wanted.stage_of;
  asked.balance = wanted.balance;
  asked.batch.microbatch = profile.microbatch;
  asked.forecast = forecast_options(training);
  asked.forecast.program.tolerant = training.tolerant;
  // Buffers that forwards write are of one replica on each rank.
  asked.may_join = wanted.may_join && train::written_buffers(graph).empty();
  asked.may_replicate = train::why_one_replica(graph, training.buffers).empty();
  for (const std::string& cut : wanted.cuts) asked.cuts.push_back(node_position(graph, cut));
  return asked;
}

/// The processor's time for the samples of a microbatch; 0 where threads that read have cores of their own, or samples are
/// handed in.
double reading_us(const train::StepReader& reader, const topology::Topology& topology,
                  const measure::RepeatOptions& repeats, const measure::BusyRanks& ranks) {
  if (reader.is_fed() || topology::has_cores_to_spare(topology)) return 0;
  std::int64_t step = 0;
  return measure::measure_reading([&] { reader.read(step++, 0); }, repeats, ranks);
}

}  // namespace

MeasuredCosts measure_recorded(const Workload& workload, const record::Recording& recorded,
                               const MeasureOptions& options, const collectives::World* world) {
  const train::StepReader reader(
      workload, {.global_batch = options.microbatch, .microbatch = options.microbatch, .lanes = 1},
      options.training.seed);
  Batch batch = reader.maker()(options.microbatch, options.training.seed);
  set_step_scalars(batch, workload.model, 0);
  std::unique_ptr<collectives::Group> group;
  measure::BusyRanks ranks;
  if (world != nullptr) {
    collectives::require_same(*world, graph::graph_sha256(recorded.graph), "model");
    collectives::require_same(*world, shared_text(options), "options of the profile");
    group = collectives::make_world_group(*world, "profile");
    ranks = measure::BusyRanks(*group, world->watch);
  }
  measure::ProfileOptions what{.update = update_of(options.training.optimizer),
                               .capture = train::capture_of(options.training)};
  if (options.files) what.offload_folder = train::offload_folder(options.training);
  if (measures_quickly()) what = measure::with_few_repeats(std::move(what));
  auto profile = std::make_shared<profile::Profile>(
      measure::measure_profile({.recording = recorded, .batch = batch, .ranks = ranks},
                               world == nullptr ? nullptr : &world->endpoint, what));
  profile->threads = options.threads;
  std::vector<double> speeds(ranks.num_ranks(), 1.0);
  if (!measures_quickly()) {  // Few repeats do not tell ranks apart.
    speeds = measure::rank_speeds({.recording = recorded, .batch = batch, .ranks = ranks},
                                  what.ranges, what.capture);
  }
  auto topology = std::make_shared<topology::Topology>(
      measure::detect_topology(ranks, {.device_memory_bytes = options.device_memory_bytes,
                                       .threads = options.threads,
                                       .speed = speeds[ranks.rank()]}));
  profile->step.read_us = reading_us(reader, *topology, what.nodes, ranks);
  return {Profile(std::move(profile)), Topology(std::move(topology))};
}

Decision decide(const graph::Graph& graph, const MeasuredCosts& measured, const PlanOptions& wanted,
                const TrainingOptions& training, const PlannedCopies& copies) {
  const profile::Profile profile = costs_of(measured.profile.value(), training);
  const topology::Topology& topology = measured.topology.value();
  const partition::PartitionOptions asked =
      partition_options(graph, profile, wanted, training, copies);
  auto plan = std::make_shared<layout::Plan>(
      partition::partition_over_replicas(graph, profile, topology, asked));
  const graph::Graph planned = layout::planned_graph(graph, *plan);
  train::check_buffers(planned, training.buffers, layout::train_role(*plan));
  std::string text =
      partition::explain(planned, *plan, forecast(planned, *plan, profile, topology, training));
  const std::string idle = partition::idle_ranks(*plan, topology, asked);
  if (!idle.empty()) text += "\n" + idle + "\n";
  return {Plan(std::move(plan)), text};
}

Front front(const graph::Graph& graph, const MeasuredCosts& measured, const PlanOptions& wanted,
            const TrainingOptions& training) {
  const profile::Profile profile = costs_of(measured.profile.value(), training);
  partition::FrontOptions asked{
      .plan = partition_options(graph, profile, wanted, training, std::nullopt)};
  if (wanted.stages_per_rank > 0 || !wanted.schedule.empty()) {
    asked.stages_per_rank = {asked.plan.stages_per_rank};
  }
  asked.may_shard = can_shard(training.optimizer);
  const std::vector<layout::Plan> plans =
      partition::front(graph, profile, measured.topology.value(), asked);
  Front result{.text = partition::show_front(plans)};
  for (const layout::Plan& plan : plans) {
    result.plans.emplace_back(std::make_shared<const layout::Plan>(plan));
  }
  return result;
}

partition::WhatIfs what_if(const graph::Graph& graph, const layout::Plan& plan,
                           const MeasuredCosts& costs, const TrainingOptions& training,
                           const schedule::Timeline* measured) {
  const profile::Profile profile = costs_of(costs.profile.value(), training);
  simulate::ForecastOptions options = forecast_options(training);
  options.program.tolerant = true;
  return partition::what_if({graph, plan, profile, costs.topology.value(), options, measured});
}

layout::Plan checked_plan(const Plan& given, const graph::Graph& recorded) {
  const layout::Plan& plan = given.value();
  try {
    layout::checked_graph(recorded, plan);
  } catch (const Error& error) {
    throw Error(error.kind(), given.origin() + ": " + error.message());
  }
  return plan;
}

layout::Plan plan_by_hand(const graph::Graph& recorded, const PlanOptions& options) {
  refuse_without_costs(options);
  layout::Plan copied;
  for (const std::string& copy : options.copies) {
    const auto position = static_cast<std::size_t>(node_position(recorded, copy));
    if (position >= recorded.nodes.size()) {
      throw Error(ErrorKind::kInvalidArgument,
                  fmt::format("--copy {}: the graph has {} nodes", copy, recorded.nodes.size()));
    }
    copied.copied_nodes.push_back(recorded.nodes[position].id);
  }
  const graph::Graph graph = layout::planned_graph(recorded, copied);
  std::vector<int> positions;
  for (const std::string& cut : options.cuts) positions.push_back(node_position(graph, cut));
  const int each = stages_per_rank(options);
  if (options.cuts.empty()) positions = layout::even_cuts(graph, std::max(options.stages, each));
  layout::Plan plan =
      layout::make_manual_plan(graph, graph::graph_sha256(recorded), positions, options.batch);
  if (options.schedule_file.empty()) {
    plan.schedule.name = options.schedule.empty() ? "interleaved" : options.schedule;
    if (options.active_microbatches != 0) {
      plan.schedule.parameters.emplace(schedule::kActiveMicrobatches, options.active_microbatches);
    }
    schedule::deal_out_stages(plan, each);
    layout::set_replicas(plan, std::max(options.replicas, 1), options.placement);
    schedule::schedule_of(plan);  // Whether it has what is asked of it.
  } else {
    layout::set_replicas(plan, std::max(options.replicas, 1), options.placement);
    schedule::set_schedule(plan, schedule::load_schedule(options.schedule_file));
    layout::set_replicas(plan, std::max(options.replicas, 1), options.placement);
  }
  const bool in_regions = options.recompute == Recompute::kRegions;
  const bool recomputes = in_regions || options.recompute == Recompute::kAll;
  for (int s = 0; recomputes && std::cmp_less(s, plan.stages.size()); ++s) {
    plan.stages[s].recompute = layout::why_not_recomputed(graph, plan, s).empty();
    if (in_regions && plan.stages[s].recompute) layout::set_regions(graph, plan, s);
  }
  for (layout::Stage& stage : plan.stages) stage.offload = options.offload == Offload::kAll;
  plan.copied_nodes = std::move(copied.copied_nodes);
  plan.threads = options.threads;
  plan.sharded_state = shards_state(options);
  plan.sharded_parameters = options.shard_parameters;
  return plan;
}

std::int64_t num_ranks_by_hand(const PlanOptions& options) {
  const std::int64_t replicas = std::max(options.replicas, 1);
  if (!options.schedule_file.empty()) {
    return std::ssize(schedule::load_schedule(options.schedule_file).ranks) * replicas;
  }
  const int each = stages_per_rank(options);
  const std::int64_t num_stages = options.cuts.empty()
                                      ? std::max(options.stages, each)
                                      : static_cast<std::int64_t>(options.cuts.size()) + 1;
  return std::max<std::int64_t>(num_stages / each, 1) * replicas;
}

bool plans_itself(const SessionOptions& options, int world_size) {
  if (options.plan || !options.planning.cuts.empty()) return false;
  if (!options.run.folder.empty()) return true;
  if (options.measures) return true;
  const std::int64_t by_hand = num_ranks_by_hand(options.planning);
  return options.planning.copies.empty() && by_hand < world_size && world_size % by_hand == 0;
}

simulate::Forecast forecast(const graph::Graph& planned, const layout::Plan& plan,
                            const profile::Profile& measured, const topology::Topology& topology,
                            const TrainingOptions& training) {
  const profile::Profile profile = costs_of(measured, training);
  const layout::ParameterMap map = layout::make_parameter_map(planned, plan);
  simulate::ForecastOptions options = forecast_options(training);
  options.program.tolerant = true;  // whoever trains says whether it is
  return simulate::forecast({planned, plan, map, profile, topology}, options);
}

simulate::StepSpread spread_of_steps(const graph::Graph& graph, const layout::Plan& plan,
                                     const MeasuredCosts& costs, const TrainingOptions& training,
                                     const simulate::Stragglers& stragglers) {
  const graph::Graph planned = layout::planned_graph(graph, plan);
  const profile::Profile profile = costs_of(costs.profile.value(), training);
  const topology::Topology& topology = costs.topology.value();
  const layout::ParameterMap map = layout::make_parameter_map(planned, plan);
  const simulate::PriceInputs inputs{planned, plan, map, profile, topology};
  simulate::ForecastOptions options = forecast_options(training);
  options.program.tolerant = true;
  const simulate::Forecast step = simulate::forecast(inputs, options);
  return simulate::play_stragglers(
      step.program,
      simulate::prices(step.program, step.stages, inputs, options.memory.gradient_dtype), topology,
      stragglers);
}

double compute_seconds(const simulate::Forecast& step, const BatchLayout& batch) {
  double microseconds = 0;  // of a microbatch
  for (const simulate::StageCost& stage : step.stages) {
    microseconds += stage.forward_us + stage.backward_us();
  }
  return 1e-6 * microseconds * static_cast<double>(batch.num_microbatches());
}

}  // namespace trireme::session

namespace trireme {

Measurement measure_model(World& world, const MakeWorkload& make, const MeasureOptions& options) {
  session::use_threads(options.threads);
  const Workload workload = train::construct(make, options.training.seed);
  record::Recording recorded =
      session::record_model({workload.model, workload.training, graph::Mode::kTrain,
                             options.microbatch, options.batch_sizes},
                            world.value());
  const session::MeasuredCosts measured = session::measure_recorded(
      workload, recorded, options, world.size() == 1 ? nullptr : &world.value());
  return {Graph(std::make_shared<const graph::Graph>(std::move(recorded.graph))), measured.profile,
          measured.topology};
}

}  // namespace trireme
