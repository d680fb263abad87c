#include "trireme/plan/simulate/rank_memory.h"

#include <algorithm>
#include <bit>
#include <set>
#include <unordered_set>

#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/layout/crossings.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/schedule/offload.h"
#include "trireme/plan/schedule/schedules.h"
#include "trireme/plan/schedule/step_facts.h"
#include "trireme/plan/simulate/held_batches.h"
#include "trireme/plan/simulate/held_state.h"
#include "trireme/plan/simulate/stage_cost.h"

namespace trireme::simulate {
namespace {

using layout::BucketKind;

/// Whether a bucket of mirrors has memory of its own: not where its owners are on the same rank.
bool has_mirrors(const layout::Plan& plan, const layout::Bucket& bucket,
                 const std::map<std::string, int>& owners) {
  return std::ranges::any_of(bucket.slots, [&](const layout::Slot& slot) {
    return layout::position_of(plan, owners.at(slot.parameter)) !=
           layout::position_of(plan, bucket.stage);
  });
}

/// State of a replica at each position of the pipeline.
std::vector<std::int64_t> optimizer_bytes(const layout::Plan& plan, const layout::ParameterMap& map,
                                          int replica, const MemoryOptions& options) {
  std::vector<std::int64_t> bytes(layout::train_role(plan).mesh.pipeline);
  for (const layout::Bucket& bucket : map.buckets) {
    if (bucket.kind != BucketKind::kOwner) continue;
    const layout::Shard& shard = bucket.shards[replica];
    const std::int64_t elements =
        plan.sharded_state ? shard.end_elements - shard.begin_elements : bucket.num_elements;
    bytes[layout::position_of(plan, bucket.stage)] +=
        elements * options.optimizer_bytes_per_element;
  }
  return bytes;
}

/// Parameters and gradients that are whole all the time, by position of the pipeline.
std::vector<RankMemory> state_by_position(const layout::Plan& plan, const layout::ParameterMap& map,
                                          Dtype gradient_dtype) {
  const std::map<std::string, int> owners = layout::owner_stages(map);
  const layout::Role& role = layout::train_role(plan);
  const std::int64_t lanes = plan.batch.lanes / role.mesh.data;
  const std::vector<bool> sharded = layout::sharded_buckets(map, plan);
  std::vector<RankMemory> positions(role.mesh.pipeline);
  for (std::size_t b = 0; b < map.buckets.size(); ++b) {
    const layout::Bucket& bucket = map.buckets[b];
    if (sharded[b]) continue;
    const int position = layout::position_of(plan, bucket.stage);
    const int replicas = role.replicas_per_rank(position);
    RankMemory& rank = positions[position];
    rank.gradients +=
        bucket.num_elements * held_bytes_per_element(bucket.dtype, gradient_dtype, lanes,
                                                     role.mesh.data / replicas, replicas);
    if (bucket.kind == BucketKind::kSite) continue;
    if (bucket.kind == BucketKind::kMirror && !has_mirrors(plan, bucket, owners)) continue;
    rank.parameters += bucket.num_elements * static_cast<std::int64_t>(size_bytes(bucket.dtype));
  }
  return positions;
}

/// By replica, the first whose shards are as large in every bucket.
std::vector<int> first_with_shards(const layout::Plan& plan, const layout::ParameterMap& map) {
  std::vector<int> alike(layout::train_role(plan).mesh.data);
  if (!plan.sharded_state) return alike;
  std::map<std::vector<std::int64_t>, int> first;
  for (int r = 0; r < static_cast<int>(alike.size()); ++r) {
    std::vector<std::int64_t> sizes;
    for (const layout::Bucket& bucket : map.buckets) {
      sizes.push_back(bucket.shards[r].end_elements - bucket.shards[r].begin_elements);
    }
    alike[r] = first.try_emplace(std::move(sizes), r).first->second;
  }
  return alike;
}

/// Sums of a shared parameter's sites on other ranks: the owner receives each into memory that it
/// keeps. By position.
std::vector<std::int64_t> tie_bytes(const layout::Plan& plan, const layout::ParameterMap& map) {
  const std::map<std::string, int> owners = layout::owner_stages(map);
  std::vector<std::int64_t> bytes(layout::train_role(plan).mesh.pipeline);
  for (const layout::Bucket& bucket : map.buckets) {
    for (const layout::Slot& slot : bucket.slots) {
      const int owner = layout::position_of(plan, owners.at(slot.parameter));
      if (owner == layout::position_of(plan, bucket.stage)) continue;
      bytes[owner] += slot.num_elements * gradient_bytes_per_element(bucket.dtype);
    }
  }
  return bytes;
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

std::int64_t sent_bytes_per_element(Dtype dtype, Dtype gradient_dtype) {
  return dtype == Dtype::kF64 ? 8 : static_cast<std::int64_t>(size_bytes(gradient_dtype));
}

std::int64_t held_bytes_per_element(Dtype dtype, Dtype gradient_dtype, std::int64_t num_lanes,
                                    int num_ranks, int num_replicas) {
  const std::int64_t summed = gradient_bytes_per_element(dtype);
  const std::int64_t sent = sent_bytes_per_element(dtype, gradient_dtype);
  const bool has_copy = num_ranks > 1 && sent != summed;
  return summed * num_gradient_buffers(num_lanes) * num_replicas + (has_copy ? sent : 0);
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
  std::vector<std::int64_t> bytes(layout::train_role(plan).mesh.pipeline, fixed_bytes(planned));
  const auto stages = layout::stages_of_values(planned, plan);
  for (const graph::Parameter& parameter : planned.parameters) {
    const graph::Value& value = planned.values[parameter.value];
    const auto used = stages.find(parameter.value);
    if (value.requires_grad || used == stages.end()) continue;
    std::set<int> positions;
    for (const int stage : used->second) positions.insert(layout::position_of(plan, stage));
    for (const int position : positions) bytes[position] += graph::bytes_at(value, 0);
  }
  return bytes;
}

namespace {

/// A microbatch in an action: what it holds before it, or is to hold after it where that is its forward; at its most;
/// after it.
struct Held {
  std::int64_t before = 0, peak = 0, after = 0;
};

Held held_in(schedule::ActionKind kind, const StageTensors& tensors) {
  switch (kind) {
    case schedule::ActionKind::kForward:
      return {tensors.kept, tensors.forward_peak, tensors.kept};
    case schedule::ActionKind::kBackward:
      return {tensors.kept, tensors.backward_peak, 0};
    case schedule::ActionKind::kBackwardInput:
      return {tensors.kept, tensors.input_peak, tensors.waiting};
    case schedule::ActionKind::kBackwardWeight:
      return {tensors.waiting, tensors.weight_peak, 0};
  }
  return {};
}

/// What a rank holds while an action runs, or after it.
struct Moment {
  std::size_t action = 0;  ///< Its place.
  std::int64_t activations = 0, transient = 0, messages = 0;
  std::int64_t total() const { return activations + transient + messages; }
};

std::vector<Moment> moments_of(const std::vector<schedule::Action>& actions,
                               std::span<const StageTensors* const> tensors,
                               const std::vector<HeldMessages>& messages,
                               const std::vector<bool>& offloads) {
  using schedule::ActionKind;
  std::set<int> offloaded, fetched;  // Places.
  for (const schedule::OffloadedMicrobatch& offload : schedule::find_offloads(actions, offloads)) {
    offloaded.insert(offload.forward);
    fetched.insert(offload.backward);
  }
  std::int64_t held = 0;  // From forward to the end of backward, and between the parts of it.
  std::vector<Moment> moments;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const ActionKind kind = actions[i].kind;
    const Held mine = held_in(kind, *tensors[actions[i].stage]);
    const bool comes = kind == ActionKind::kForward || fetched.contains(static_cast<int>(i));
    if (comes) held += mine.before;
    moments.push_back({i, held, mine.peak - mine.before, messages[i].during});
    held += mine.after - mine.before;
    moments.push_back({i, held, 0, messages[i].after});
    if (offloaded.contains(static_cast<int>(i))) held -= mine.after;
  }
  return moments;
}

/// The most activations, and of what is added to them at the moment of most bytes as much as passes may take.
RankMemory most_of(const std::vector<Moment>& moments) {
  Moment most;
  std::int64_t total = 0;
  for (const Moment& moment : moments) {
    most.activations = std::max(most.activations, moment.activations);
    most.transient = std::max(most.transient, moment.transient);
    total = std::max(total, moment.total());
  }
  const std::int64_t transient = std::min(most.transient, total - most.activations);
  return {.activations = most.activations,
          .transient = transient,
          .messages = total - most.activations - transient};
}

/// At the moment at which these and values and gradients are most together.
RankMemory most_of(const std::vector<Moment>& moments, const std::vector<HeldState>& state) {
  RankMemory most;
  for (const Moment& moment : moments) {
    const HeldState& held = state[moment.action];
    const RankMemory now{.parameters = held.parameters,
                         .gradients = held.gradients,
                         .activations = moment.activations,
                         .transient = moment.transient,
                         .messages = moment.messages};
    if (now.total() > most.total()) most = now;
  }
  return most;
}

}  // namespace

RankMemory run_memory(const std::vector<schedule::Action>& actions,
                      std::span<const StageTensors* const> tensors,
                      const std::vector<HeldMessages>& messages,
                      const std::vector<bool>& offloads) {
  return most_of(moments_of(actions, tensors, messages, offloads));
}

RankMemory run_memory(const std::vector<schedule::Action>& actions, const StageTensors& tensors,
                      const std::vector<HeldMessages>& messages) {
  const std::size_t num_stages = actions.front().stage + 1;
  return run_memory(actions, std::vector(num_stages, &tensors), messages,
                    std::vector<bool>(num_stages));
}

std::vector<RankMemory> rank_memory(const graph::Graph& planned, const layout::Plan& plan,
                                    const layout::ParameterMap& map,
                                    const std::vector<StageTensors>& tensors,
                                    const MemoryOptions& options,
                                    const std::vector<std::vector<HeldMessages>>* expected) {
  const layout::Role& role = layout::train_role(plan);
  const schedule::Schedule schedule = schedule::schedule_of(plan);
  const std::vector<std::vector<HeldMessages>> most =
      expected == nullptr ? held_messages(planned, plan) : decltype(held_messages(planned, plan))();
  const std::vector<std::int64_t> ties = tie_bytes(plan, map);
  const std::vector<std::int64_t> fixed = fixed_bytes(planned, plan);
  std::vector<std::vector<schedule::Action>> actions;
  for (int p = 0; p < role.mesh.pipeline; ++p) {
    actions.push_back(schedule::actions_of_rank(schedule.ranks[p], role.replicas_per_rank(p),
                                                schedule.num_microbatches));
  }
  const std::vector<std::int64_t> batches = held_batch_bytes(planned, plan, actions);
  const std::vector<RankMemory> positions = state_by_position(plan, map, options.gradient_dtype);
  std::vector<const StageTensors*> tensors_of;
  for (const StageTensors& stage : tensors) tensors_of.push_back(&stage);
  std::vector<bool> offloads;
  for (const layout::Stage& stage : plan.stages) offloads.push_back(stage.offload);
  std::vector<RankMemory> ranks(1 +
                                *std::max_element(role.placement.begin(), role.placement.end()));
  const std::vector<int> same = first_with_shards(plan, map);
  for (int r = 0; r < role.mesh.data; ++r) {
    const std::vector<std::int64_t> state = optimizer_bytes(plan, map, r, options);
    for (int p = 0; p < role.mesh.pipeline; ++p) {
      const int each = role.replicas_per_rank(p);
      if (r % each != 0) continue;  // Of a rank that has an earlier one.
      const int place = p * role.mesh.data, world_rank = role.placement[place + r];
      if (expected == nullptr && same[r] != r) {
        ranks[world_rank] = ranks[role.placement[place + same[r]]];
        continue;
      }
      const std::vector<HeldMessages> messages =
          expected == nullptr ? messages_of_replicas(most[p], each) : (*expected)[world_rank];
      const std::vector<Moment> moments = moments_of(actions[p], tensors_of, messages, offloads);
      const RankMemory run =
          plan.sharded_parameters
              ? most_of(moments, held_state(actions[p], plan, map, r, options.gradient_dtype))
              : most_of(moments);
      RankMemory& rank = ranks[world_rank];
      rank = positions[p];
      rank.parameters += run.parameters;
      rank.gradients += run.gradients;
      rank.optimizer = state[p];
      rank.activations = run.activations;
      rank.transient = run.transient;
      rank.messages = run.messages + ties[p];
      rank.batch = batches[p];
      rank.fixed = fixed[p];
    }
  }
  return ranks;
}

}  // namespace trireme::simulate
