#include "trireme/engine/train/verify_shards.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "trireme/engine/measure/measurement.h"
#include "trireme/engine/shard/sharded_recording.h"
#include "trireme/engine/train/construct_workload.h"
#include "trireme/engine/train/verify_ranks.h"
#include "trireme/error.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/manual_plan.h"
#include "trireme/plan/sharding/find_tiles.h"

namespace trireme::train {
namespace {

using reference::Keep;
using reference::RunRecord;
using reference::Tensors;
using sharding::Sharding;
using sharding::ShardRange;

void check_optimizer(const OptimizerOptions& options) {
  const bool is_elementwise = options.name == "sgd" || options.name == "adamw";
  if (is_elementwise && options.clip_norm == 0) return;
  throw Error(
      ErrorKind::kInvalidArgument,
      "shards train by sgd or adamw without clipping so far: other optimizers and clip_norm "
      "take norms over whole tensors; got optimizer " +
          options.name + ", clip_norm " + std::to_string(options.clip_norm));
}

layout::Plan uncut_plan(const graph::Graph& graph, const BatchLayout& batch) {
  return layout::make_manual_plan(graph, graph::graph_sha256(graph), {}, batch);
}

Sharding find(const graph::Graph& graph, const ComparedShards& options) {
  sharding::ShardingOptions wanted = options.sharding;
  wanted.microbatch = options.batch.microbatch;
  if (options.kind == sharding::SplitKind::kTiles) {
    Sharding tiles = sharding::find_tiles(graph, wanted);
    if (!tiles.parts.empty()) return tiles;
    throw Error(ErrorKind::kInvalidArgument,
                "no rows of the model can be split over " + std::to_string(wanted.num_shards) +
                    " shards: that takes convolutions whose outputs have at least as many rows");
  }
  Sharding sharding = sharding::find_sharding(graph, wanted);
  if (!sharding.parts.empty()) return sharding;
  throw Error(ErrorKind::kInvalidArgument,
              "nothing of the model can be split over " + std::to_string(wanted.num_shards) +
                  " shards, as products with weights whose inputs come from another one, by heads "
                  "or channels that this number divides");
}

/// A training of some of the shards.
class ShardTraining {
 public:
  ShardTraining(const MakeWorkload& make_workload, const ComparedShards& options)
      : options_(options),
        workload_(construct(make_workload, options.steps.seed)),
        whole_(record_training(workload_, options.batch.microbatch, options.steps.sizes)),
        sharding_(find(whole_.graph, options)) {}

  const Sharding& sharding() const { return sharding_; }
  const record::Recording& whole() const { return whole_; }

  RunRecord run(ShardRange range, const shard::ShardPeers& peers, const RunWatch& watch) {
    sharded_ = shard::make_sharded_recording(whole_, sharding_, range, peers);
    const graph::Graph& graph = sharded_.recording.graph;
    workload_.model.parameters.clear();
    for (const graph::Parameter& parameter : graph.parameters) {
      workload_.model.parameters.push_back(
          {parameter.name, sharded_.recording.tensors[parameter.value]});
    }
    SerialSession session(workload_, sharded_.recording, uncut_plan(graph, options_.batch),
                          training_of(options_.steps));
    return record_run(session, workload_, options_.steps.num_steps, watch);
  }

  /// Tensors by names of parameters, put together from those of parts.
  Tensors put_together(const Tensors& parts) const {
    const at::NoGradGuard no_grad;
    Tensors result = parts;
    for (const sharding::ParameterPart& part : sharded_.parts) {
      const auto found = result.find(part.name);
      if (found == result.end()) continue;
      const graph::Parameter& parameter = whole_.graph.parameters[part.parameter];
      at::Tensor& whole = result[parameter.name];
      if (!whole.defined()) {
        whole = at::empty(whole_.tensors[parameter.value].sizes(), found->second.options());
      }
      shard::put_part(found->second, whole, sharding_.splits.at(parameter.value),
                      sharding_.num_shards, part.shard);
      result.erase(part.name);
    }
    return result;
  }

 private:
  const ComparedShards& options_;
  Workload workload_;
  record::Recording whole_;
  Sharding sharding_;
  shard::ShardedRecording sharded_;
};

/// Largest difference of a tensor, by the norm of all; infinite where names or shapes differ.
double difference_by_norm_of_all(const Tensors& run, const Tensors& reference) {
  double squares = 0, largest = 0;
  const bool has_all = std::ranges::equal(run, reference, {}, &Tensors::value_type::first,
                                          &Tensors::value_type::first);
  if (!has_all) return std::numeric_limits<double>::infinity();
  for (const auto& [name, tensor] : reference) {
    const at::Tensor expected = tensor.to(at::kDouble);
    if (run.at(name).sizes() != expected.sizes()) return std::numeric_limits<double>::infinity();
    const double norm = expected.norm().item<double>();
    squares += norm * norm;
    const at::Tensor difference = at::sub(run.at(name).to(at::kDouble), expected);
    largest = std::max(largest, difference.norm().item<double>());
  }
  return largest == 0 ? 0 : largest / std::sqrt(squares);
}

/// Of all but the first, where there are more.
double median_step_ms(const RunRecord& run) {
  return measure::median(
      {run.step_ms.begin() + (run.step_ms.size() > 1 ? 1 : 0), run.step_ms.end()});
}

/// All shards in one process with the whole model, and what its steps took.
ReferenceRun compare_with_model(const MakeWorkload& make_workload, const ComparedShards& options,
                                const std::function<void()>& after_step, double& model_step_ms) {
  const RunWatch watch{Keep::kTensors, after_step};
  ShardTraining shards(make_workload, options);
  RunRecord run = shards.run({0, shards.sharding().num_shards}, {}, watch);
  const Workload workload = construct(make_workload, options.steps.seed);
  const record::Recording recording =
      record_training(workload, options.batch.microbatch, options.steps.sizes);
  SerialSession session(workload, recording, uncut_plan(recording.graph, options.batch),
                        training_of(options.steps));
  const RunRecord model = record_run(session, workload, options.steps.num_steps, watch);
  model_step_ms = median_step_ms(model);
  Comparison result{.against = "whole model", .must_be_bitwise = false, .is_bitwise = false};
  for (std::size_t step = 0; step < model.losses.size(); ++step) {
    const double expected = model.losses[step];
    result.is_finite = result.is_finite && std::isfinite(expected);
    result.worst_loss =
        std::max(result.worst_loss, std::abs(run.losses[step] - expected) / std::abs(expected));
  }
  result.worst_gradient =
      difference_by_norm_of_all(shards.put_together(run.first_gradients), model.first_gradients);
  result.worst_weight =
      difference_by_norm_of_all(shards.put_together(run.last_weights), model.last_weights);
  result.gradient_limit = 1e-5;  // Shards add up in another order.
  if (options.steps.optimizer.name == "sgd") result.weight_limit = 1e-5;
  if (!result.passes()) result.first_difference = "numbers of the whole model";
  run.first_gradients.clear();
  run.last_weights.clear();
  return {std::move(run), {std::move(result)}};
}

/// What a rank has of a run of all shards.
RunRecord part_of(const RunRecord& all, const RunRecord& rank) {
  RunRecord part{.losses = all.losses, .gradients = {}, .weights = {}, .buffers = all.buffers};
  const auto those_of = [](const reference::Digests& from, const reference::Digests& names) {
    reference::Digests found;
    for (const auto& [name, digest] : from) {
      if (names.contains(name)) found[name] = digest;
    }
    return found;
  };
  for (std::size_t step = 0; step < all.gradients.size(); ++step) {
    part.gradients.push_back(those_of(all.gradients[step], rank.gradients[step]));
  }
  part.weights = those_of(all.weights, rank.weights);
  return part;
}

}  // namespace

ShardVerification verify_shards(const collectives::World& world, const MakeWorkload& make_workload,
                                const ComparedShards& options) {
  check_optimizer(options.steps.optimizer);
  double model_step_ms = 0;
  ReferenceRun reference = run_on_first(world, [&](const std::function<void()>& after_step) {
    return compare_with_model(make_workload, options, after_step, model_step_ms);
  });
  ShardTraining training(make_workload, options);
  const auto group = collectives::make_world_group(world, "shards");
  const int count = training.sharding().num_shards / world.size();
  const RunRecord run = training.run({world.rank() * count, count}, {group.get(), world.watch}, {});
  Comparison ranks{.against = "one process with all shards"};
  const RunRecord mine = part_of(reference.run, run);
  reference::compare(run, mine, ranks);
  const std::string missing = first_missing(world, mine, reference.run);
  if (ranks.first_difference.empty()) ranks.first_difference = missing;
  ranks.first_difference = first_difference(world, ranks);
  ranks.is_bitwise = ranks.first_difference.empty();
  reference.comparisons.insert(reference.comparisons.begin(), std::move(ranks));
  return {training.sharding(), median_step_ms(run), model_step_ms,
          std::move(reference.comparisons)};
}

}  // namespace trireme::train
