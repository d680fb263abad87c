#include "trireme/plan/partition/stage_copies.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "trireme/error.h"
#include "trireme/plan/graph/ancestor_finder.h"
#include "trireme/plan/graph/copy_to_consumers.h"
#include "trireme/plan/graph/cuts.h"
#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/layout/crossings.h"
#include "trireme/plan/simulate/stage_cost.h"

namespace trireme::partition {
namespace {

using graph::NodeId;
using graph::ValueId;

constexpr std::size_t kMaxConeNodes = 64;
constexpr std::size_t kMaxCandidates = 4;
/// A cone that takes a larger part of a microbatch is no candidate.
constexpr double kMaxConeShare = 0.05;

double forward_us(const std::vector<int>& positions, const std::vector<profile::NodeTime>& times) {
  double sum = 0;
  for (const int position : positions) sum += times[position].forward_us;
  return sum;
}

/// Where values are used: positions of the first and last consumer, and their number.
struct Uses {
  int first = -1;
  int last = -1;
  int count = 0;
};

std::vector<Uses> count_uses(const graph::Graph& graph) {
  std::vector<Uses> uses(graph.values.size());
  for (int position = 0; position < static_cast<int>(graph.nodes.size()); ++position) {
    for (const ValueId id : graph::input_values(graph.nodes[position])) {
      if (uses[id].last == position) continue;
      if (uses[id].count++ == 0) uses[id].first = position;
      uses[id].last = position;
    }
  }
  return uses;
}

bool has_trainable(const graph::Graph& graph, const std::vector<int>& cone) {
  return std::any_of(cone.begin(), cone.end(), [&](int position) {
    const std::vector<ValueId> inputs = graph::input_values(graph.nodes[position]);
    return std::any_of(inputs.begin(), inputs.end(), [&](ValueId id) {
      return graph.values[id].source == graph::ValueSource::kParameter &&
             graph.values[id].requires_grad;
    });
  });
}

}  // namespace

bool can_copy(const graph::Graph& recorded, const std::vector<NodeId>& nodes) {
  try {
    graph::copy_to_consumers(recorded, nodes);
    return true;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kInvalidArgument) throw;
    return false;
  }
}

/// Finds what a stage would have to run to make a value itself.
class StageCopies::ConeFinder {
 public:
  explicit ConeFinder(const graph::Graph& graph)
      : graph_(graph), positions_(graph::node_positions(graph)) {
    for (const auto& [storage, history] : graph::storage_histories(graph)) {
      if (!history.writes.empty()) written_.insert(storage);
    }
    for (const graph::Buffer& buffer : graph.buffers) {
      if (buffer.policy == graph::BufferPolicy::kReadOnly) continue;
      written_.insert(graph.values[buffer.value].storage_id);
    }
  }

  /// Positions, ascending, of the nodes that `value` is made by, but those in `present`; nothing
  /// where one of them may not be copied.
  std::optional<std::vector<int>> find(ValueId value, const std::set<int>& present) const {
    std::set<int> cone;
    std::vector<ValueId> open = {value};
    while (!open.empty()) {
      const graph::Value& next = graph_.values[open.back()];
      open.pop_back();
      if (next.source != graph::ValueSource::kNode) continue;
      const int producer = positions_.at(next.producer);
      if (present.contains(producer) || !cone.insert(producer).second) continue;
      if (cone.size() > kMaxConeNodes || !can_copy(graph_.nodes[producer])) return std::nullopt;
      const std::vector<ValueId> inputs = graph::input_values(graph_.nodes[producer]);
      open.insert(open.end(), inputs.begin(), inputs.end());
    }
    return std::vector<int>(cone.begin(), cone.end());
  }

 private:
  /// Stricter than layout::check: nothing that it touches is written, ever.
  bool can_copy(const graph::Node& node) const {
    if (node.op == "opaque" || !node.writes.empty()) return false;
    std::vector<ValueId> values = graph::input_values(node);
    values.insert(values.end(), node.outputs.begin(), node.outputs.end());
    return std::all_of(values.begin(), values.end(), [this](ValueId id) {
      return id < 0 ||
             (!graph_.values[id].requires_grad && !written_.contains(graph_.values[id].storage_id));
    });
  }

  const graph::Graph& graph_;
  std::unordered_map<NodeId, int> positions_;
  std::unordered_set<int> written_;  ///< Storages.
};

StageCopies::StageCopies(const graph::Graph& planned, const profile::Profile& profile)
    : graph_(planned),
      profile_(profile),
      times_(profile::node_times(profile, planned)),
      finder_(std::make_unique<ConeFinder>(planned)) {}

StageCopies::~StageCopies() = default;

std::vector<int> StageCopies::choose(std::span<const Arrival> arrivals) const {
  std::set<int> present;
  for (const Arrival& arrival : arrivals) {
    const std::int64_t bytes =
        simulate::span_bytes(graph_.values[arrival.value], profile_.microbatch);
    const double send_us = profile::link_us(profile_, arrival.link_kind, bytes, true) +
                           profile::message_work_us(profile_.step, bytes);
    const std::optional<std::vector<int>> cone = finder_->find(arrival.value, present);
    if (cone && forward_us(*cone, times_) < send_us) present.insert(cone->begin(), cone->end());
  }
  return {present.begin(), present.end()};
}

void add_stage_copies(const graph::Graph& planned, const profile::Profile& profile,
                      const StageLinks& link_kind, layout::Plan& plan) {
  std::vector<std::vector<StageCopies::Arrival>> arrivals(plan.stages.size());
  bool has_plain = false;
  for (const layout::Crossing& crossing : layout::crossings(planned, plan)) {
    if (crossing.has_gradient) continue;
    has_plain = true;
    for (std::size_t i = 1; i < crossing.stages.size(); ++i) {
      const int to = crossing.stages[i];
      arrivals[to].push_back({crossing.value, link_kind(crossing.stages[0], to)});
    }
  }
  if (!has_plain) return;
  const StageCopies copies(planned, profile);
  for (std::size_t s = 0; s < arrivals.size(); ++s) {
    for (const int position : copies.choose(arrivals[s])) {
      plan.stages[s].copies.push_back(planned.nodes[position].id);
    }
  }
}

std::vector<std::vector<NodeId>> copy_candidates(const graph::Graph& recorded,
                                                 const profile::Profile& profile) {
  const std::vector<profile::NodeTime> times = profile::node_times(profile, recorded);
  const std::vector<bool> allowed = graph::allowed_cuts(recorded);
  const std::vector<Uses> uses = count_uses(recorded);
  const graph::AncestorFinder finder(recorded);
  double total_us = 0;
  for (const profile::NodeTime& time : times) total_us += time.forward_us + time.backward_us();
  std::map<std::pair<std::int64_t, ValueId>, std::vector<NodeId>> found;  // Largest first.
  for (ValueId id = 0; id < static_cast<ValueId>(uses.size()); ++id) {
    const graph::Value& value = recorded.values[id];
    if (value.source != graph::ValueSource::kNode || !value.requires_grad || uses[id].count < 2 ||
        std::none_of(
            allowed.begin() + uses[id].first + 1, allowed.begin() + uses[id].last + 1,
            [](bool is_allowed) { return is_allowed; })) {
      continue;
    }
    const std::optional<std::vector<int>> cone = finder.find(id, kMaxConeNodes);
    if (!cone) continue;
    double cone_us = 0;
    for (const int p : *cone) cone_us += times[p].forward_us + times[p].backward_us();
    if (cone_us > kMaxConeShare * total_us || !has_trainable(recorded, *cone)) continue;
    std::vector<NodeId> nodes;
    for (const int position : *cone) nodes.push_back(recorded.nodes[position].id);
    if (!partition::can_copy(recorded, nodes)) continue;
    found[{-simulate::span_bytes(value, profile.microbatch), id}] = std::move(nodes);
  }
  std::vector<std::vector<NodeId>> candidates;
  for (auto& [key, nodes] : found) {
    if (candidates.size() == kMaxCandidates) break;
    if (std::find(candidates.begin(), candidates.end(), nodes) == candidates.end()) {
      candidates.push_back(std::move(nodes));
    }
  }
  return candidates;
}

}  // namespace trireme::partition
