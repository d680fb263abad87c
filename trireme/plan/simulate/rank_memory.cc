#include "trireme/plan/simulate/rank_memory.h"

#include <algorithm>
#include <bit>
#include <unordered_set>

#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/layout/crossings.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/schedule/schedules.h"
#include "trireme/plan/schedule/step_facts.h"
#include "trireme/plan/simulate/stage_cost.h"

namespace trireme::simulate {
namespace {

using layout::BucketKind;

/// Parameters, gradients and optimizer state by stage.
std::vector<RankMemory> state_of_stages(const layout::Plan& plan, const layout::ParameterMap& map,
                                        const MemoryOptions& options) {
  const int num_buffers =
      num_gradient_buffers(plan.batch.lanes / layout::train_role(plan).mesh.data);
  std::vector<RankMemory> stages(plan.stages.size());
  for (const layout::Bucket& bucket : map.buckets) {
    RankMemory& stage = stages[bucket.stage];
    stage.gradients += bucket.num_elements * gradient_bytes_per_element(bucket.dtype) * num_buffers;
    if (bucket.kind == BucketKind::kSite) continue;
    stage.parameters += bucket.num_elements * static_cast<std::int64_t>(size_bytes(bucket.dtype));
    if (bucket.kind != BucketKind::kOwner) continue;
    stage.optimizer += bucket.num_elements * options.optimizer_bytes_per_element;
  }
  return stages;
}

/// Sums of a shared parameter's sites in other stages: the owner receives each into memory that it
/// keeps.
std::vector<std::int64_t> tie_bytes(const layout::Plan& plan, const layout::ParameterMap& map) {
  const std::map<std::string, int> owners = layout::owner_stages(map);
  std::vector<std::int64_t> bytes(plan.stages.size());
  for (const layout::Bucket& bucket : map.buckets) {
    for (const layout::Slot& slot : bucket.slots) {
      const int owner = owners.at(slot.parameter);
      if (owner == bucket.stage) continue;
      bytes[owner] += slot.num_elements * gradient_bytes_per_element(bucket.dtype);
    }
  }
  return bytes;
}

/// Whether weights of losses are computed from the samples.
bool weighs_samples(const graph::Graph& planned) {
  std::vector<graph::ValueId> weights;
  for (const graph::LossOutput& loss : planned.losses) {
    if (loss.weight) weights.push_back(*loss.weight);
  }
  return std::ranges::any_of(graph::ancestors(planned, weights), [&](int position) {
    return std::ranges::any_of(
        graph::input_values(planned.nodes[position]),
        [&](graph::ValueId id) { return planned.values[id].source == graph::ValueSource::kInput; });
  });
}

}  // namespace

std::int64_t RankMemory::total() const {
  return parameters + gradients + optimizer + activations + transient + messages + batch + fixed;
}

std::map<std::string, std::int64_t> RankMemory::by_kind() const {
  std::map<std::string, std::int64_t> kinds = {
      {"parameters", parameters}, {"gradients", gradients},
      {"optimizer", optimizer},   {"activations", activations},
      {"transient", transient},   {"messages", messages},
      {"batch", batch},           {"fixed", fixed}};
  std::erase_if(kinds, [](const auto& kind) { return kind.second == 0; });
  return kinds;
}

int num_gradient_buffers(std::int64_t num_lanes) {
  // The most bits set in a number below num_lanes, plus one.
  return std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(num_lanes, 1)));
}

std::int64_t gradient_bytes_per_element(Dtype dtype) { return dtype == Dtype::kF64 ? 8 : 4; }

std::int64_t batch_bytes(const graph::Graph& planned, std::int64_t microbatch) {
  std::int64_t bytes = 0;
  for (const graph::Input& input : planned.inputs) {
    bytes += graph::bytes_at(planned.values[input.value], microbatch);
  }
  return bytes;
}

int batches_ahead(std::int64_t batch_bytes) {
  constexpr std::int64_t kSmall = std::int64_t{4} << 20;
  constexpr std::int64_t kMost = 16;
  return static_cast<int>(
      std::clamp<std::int64_t>(kSmall / std::max<std::int64_t>(batch_bytes, 1), 1, kMost));
}

std::int64_t held_batch_bytes(const graph::Graph& planned, std::int64_t microbatch,
                              std::int64_t num_microbatches) {
  const std::int64_t bytes = batch_bytes(planned, microbatch);
  const std::int64_t ahead = batches_ahead(bytes);
  if (!keeps_batches(bytes, num_microbatches) || !weighs_samples(planned)) {
    return bytes * (1 + ahead);
  }
  return bytes * (num_microbatches + std::max(num_microbatches, ahead));
}

bool keeps_batches(std::int64_t batch_bytes, std::int64_t num_microbatches) {
  constexpr std::int64_t kMost = std::int64_t{32} << 20;
  return batch_bytes <= kMost / std::max<std::int64_t>(num_microbatches, 1);
}

std::int64_t fixed_bytes(const graph::Graph& planned) {
  std::unordered_set<graph::ValueId> used;
  for (const graph::Node& node : planned.nodes) {
    for (const graph::ValueId id : graph::input_values(node)) used.insert(id);
  }
  std::int64_t bytes = 0;
  for (const graph::Parameter& parameter : planned.parameters) {
    if (used.contains(parameter.value)) continue;
    bytes += graph::bytes_at(planned.values[parameter.value], 0);
  }
  for (const graph::Buffer& buffer : planned.buffers) {
    bytes += graph::bytes_at(planned.values[buffer.value], 0);
  }
  for (const graph::ConstantTensor& constant : planned.constants) {
    bytes += graph::bytes_at(planned.values[constant.value], 0);
  }
  return bytes;
}

std::vector<std::int64_t> fixed_bytes(const graph::Graph& planned, const layout::Plan& plan) {
  std::vector<std::int64_t> bytes(plan.stages.size(), fixed_bytes(planned));
  const auto stages = layout::stages_of_values(planned, plan);
  for (const graph::Parameter& parameter : planned.parameters) {
    const graph::Value& value = planned.values[parameter.value];
    const auto used = stages.find(parameter.value);
    if (value.requires_grad || used == stages.end()) continue;
    for (const int stage : used->second) bytes[stage] += graph::bytes_at(value, 0);
  }
  return bytes;
}

namespace {

std::int64_t peak_of(schedule::ActionKind kind, const StageTensors& tensors) {
  switch (kind) {
    case schedule::ActionKind::kForward:
      return tensors.forward_peak;
    case schedule::ActionKind::kBackward:
      return tensors.backward_peak;
    default:
      return tensors.split_peak;
  }
}

}  // namespace

RankMemory run_memory(const std::vector<schedule::Action>& actions, const StageTensors& tensors,
                      const std::vector<HeldMessages>& messages) {
  using schedule::ActionKind;
  std::int64_t num_held = 0;     // Microbatches between forward and the end of their backward.
  std::int64_t num_waiting = 0;  // Between the parts of their backward.
  std::int64_t activations = 0, transient = 0, most = 0;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const ActionKind kind = actions[i].kind;
    num_held += kind == ActionKind::kForward;
    num_waiting += kind == ActionKind::kBackwardInput;
    const std::int64_t peak = peak_of(kind, tensors);
    const std::int64_t held = num_held * tensors.kept + num_waiting * tensors.waiting;
    activations = std::max(activations, held);
    transient = std::max(transient, peak - tensors.kept);
    most = std::max(most, held - tensors.kept + peak + messages[i].during);
    num_held -= schedule::completes_gradients(kind);
    num_waiting -= kind == ActionKind::kBackwardWeight;
    most =
        std::max(most, num_held * tensors.kept + num_waiting * tensors.waiting + messages[i].after);
  }
  RankMemory memory{.activations = activations, .transient = transient};
  memory.messages = std::max<std::int64_t>(0, most - memory.total());
  return memory;
}

std::vector<RankMemory> rank_memory(const graph::Graph& planned, const layout::Plan& plan,
                                    const layout::ParameterMap& map,
                                    const std::vector<StageTensors>& tensors,
                                    const MemoryOptions& options) {
  const layout::Role& role = layout::train_role(plan);
  const int num_stages = static_cast<int>(plan.stages.size());
  const std::int64_t num_microbatches = plan.batch.num_microbatches() / role.mesh.data;
  const schedule::Schedule schedule =
      schedule::make_schedule(plan.schedule, num_stages, static_cast<int>(num_microbatches));
  const std::vector<std::vector<HeldMessages>> messages = held_messages(planned, plan);
  const std::vector<std::int64_t> ties = tie_bytes(plan, map);
  const std::vector<std::int64_t> fixed = fixed_bytes(planned, plan);
  const std::int64_t batch = held_batch_bytes(planned, plan.batch.microbatch, num_microbatches);
  std::vector<RankMemory> stages = state_of_stages(plan, map, options);
  std::vector<RankMemory> ranks(1 +
                                *std::max_element(role.placement.begin(), role.placement.end()));
  for (int s = 0; s < num_stages; ++s) {
    RankMemory& stage = stages[s];
    const RankMemory run = run_memory(schedule.ranks[s], tensors[s], messages[s]);
    stage.activations = run.activations;
    stage.transient = run.transient;
    stage.messages = run.messages + ties[s];
    stage.batch = batch;
    stage.fixed = fixed[s];
    for (int r = 0; r < role.mesh.data; ++r) ranks[role.placement[s * role.mesh.data + r]] = stage;
  }
  return ranks;
}

}  // namespace trireme::simulate
