#include "trireme/plan/simulate/held_batches.h"

#include <algorithm>
#include <map>
#include <set>

#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/layout/crossings.h"

namespace trireme::simulate {
namespace {

/// Whether the weight is computed from fields of the batch, or is one.
bool is_of_samples(const graph::Graph& planned, graph::ValueId weight) {
  if (planned.values[weight].source == graph::ValueSource::kInput) return true;
  return std::ranges::any_of(graph::ancestors(planned, std::span(&weight, 1)), [&](int position) {
    return graph::takes_field(planned, planned.nodes[position]);
  });
}

/// Most microbatches whose samples are held at once: from the first to the last of `readers` that takes them.
std::int64_t most_running(const std::vector<schedule::Action>& actions,
                          const std::set<int>& readers) {
  std::map<int, std::size_t> taken;  // By microbatch: how many stages have.
  std::size_t most = 1;
  for (const schedule::Action& action : actions) {
    if (action.kind != schedule::ActionKind::kForward || !readers.contains(action.stage)) continue;
    const std::size_t times = ++taken[action.microbatch];
    most = std::max(most, taken.size());
    if (times == readers.size()) taken.erase(action.microbatch);
  }
  return static_cast<std::int64_t>(most);
}

}  // namespace

std::vector<SampleUse> sample_uses(const graph::Graph& planned) {
  std::vector<SampleUse> uses;
  for (const graph::Node& node : planned.nodes) uses.push_back({graph::takes_field(planned, node)});
  for (const graph::LossOutput& loss : planned.losses) {
    if (!loss.weight || !is_of_samples(planned, *loss.weight)) continue;
    std::size_t last =
        0;  // Who makes the value reports the loss, who uses it last begins the backward.
    for (std::size_t p = 0; p < planned.nodes.size(); ++p) {
      const std::vector<graph::ValueId> inputs = graph::input_values(planned.nodes[p]);
      if (planned.nodes[p].id == planned.values[loss.value].producer) uses[p].weights = true;
      if (std::ranges::find(inputs, loss.value) != inputs.end()) last = p;
    }
    if (last > 0 && loss.coefficient != 0) uses[last].weights = true;
  }
  return uses;
}

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

bool keeps_batches(std::int64_t batch_bytes, std::int64_t num_microbatches) {
  constexpr std::int64_t kMost = std::int64_t{32} << 20;
  return batch_bytes <= kMost / std::max<std::int64_t>(num_microbatches, 1);
}

std::int64_t held_batch_bytes(std::int64_t batch_bytes, SampleUse use,
                              std::int64_t num_microbatches, std::int64_t num_running) {
  if (!use.forward && !use.weights) return 0;
  const std::int64_t ahead = batches_ahead(batch_bytes);
  const bool keeps = use.forward && use.weights && keeps_batches(batch_bytes, num_microbatches);
  if (!keeps) return batch_bytes * (num_running + ahead);
  return batch_bytes * (num_microbatches + std::max(num_microbatches, ahead));
}

std::vector<std::int64_t> held_batch_bytes(const graph::Graph& planned, const layout::Plan& plan,
                                           std::span<const std::vector<schedule::Action>> actions) {
  const layout::Role& role = layout::train_role(plan);
  const std::vector<SampleUse> of_node = sample_uses(planned);
  const auto positions = layout::stage_positions(planned, plan);
  std::vector<SampleUse> uses(role.mesh.pipeline);
  std::vector<std::set<int>> readers(role.mesh.pipeline);
  for (int s = 0; s < static_cast<int>(positions.size()); ++s) {
    SampleUse use;
    for (const int position : positions[s]) use |= of_node[position];
    uses[layout::position_of(plan, s)] |= use;
    if (use.forward) readers[layout::position_of(plan, s)].insert(s);
  }
  const std::int64_t bytes = batch_bytes(planned, plan.batch.microbatch);
  std::vector<std::int64_t> held;
  for (int p = 0; p < role.mesh.pipeline; ++p) {
    held.push_back(held_batch_bytes(
        bytes, uses[p],
        std::int64_t{role.replicas_per_rank(p)} * layout::num_microbatches_of_replica(plan),
        most_running(actions[p], readers[p])));
  }
  return held;
}

}  // namespace trireme::simulate
