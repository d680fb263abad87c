#include "trireme/plan/graph/cuts.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <unordered_map>

#include "trireme/plan/graph/graph_queries.h"

namespace trireme::graph {
namespace {

enum class Reason {
  kWrite,
  kStrided,
  kManyUses,
  kUntrainedUse,
  kRescaled,
  kBuffer,
  kChanged,
  kStaleView,
  kRagged
};

/// No cut c with first < c <= last.
struct ForbiddenRange {
  int first;
  int last;
  Reason reason;
  int subject;  ///< Value produced first, parameter or buffer, by `reason`.
};

using Ranges = std::vector<ForbiddenRange>;

void add_storages(const Graph& graph, Ranges& ranges) {
  for (const auto& [storage, history] : storage_histories(graph)) {
    if (history.first_production == StorageHistory::kNever) continue;
    const auto add = [&](const std::vector<int>& positions, Reason reason) {
      if (positions.empty() || positions.back() <= history.first_production) return;
      ranges.push_back({history.first_production, positions.back(), reason, history.first_value});
    };
    add(history.writes, Reason::kWrite);
    add(history.strided, Reason::kStrided);
  }
}

void add_parameters(const Graph& graph, Ranges& ranges) {
  const std::unordered_map<NodeId, int> positions = node_positions(graph);
  for (const UseSite& site : use_sites(graph)) {
    if (site.nodes.size() == 1) continue;
    ranges.push_back({positions.at(site.nodes.front()), positions.at(site.nodes.back()),
                      Reason::kManyUses, site.parameter});
  }
}

/// Positions of the nodes that take each trained parameter with gradient, ascending; by its value.
std::map<ValueId, std::vector<int>> trained_uses(const Graph& graph) {
  const std::unordered_map<NodeId, int> positions = node_positions(graph);
  std::map<ValueId, std::vector<int>> uses;
  for (const UseSite& site : use_sites(graph)) {
    auto& own = uses[graph.parameters[site.parameter].value];
    for (const NodeId node : site.nodes) own.push_back(positions.at(node));
  }
  return uses;
}

/// The one of `positions` that is nearest. positions   ascending, not empty.
int nearest(const std::vector<int>& positions, int position) {
  const auto after = std::ranges::lower_bound(positions, position);
  if (after == positions.begin()) return *after;
  const int before = *std::prev(after);
  return after != positions.end() && *after - position < position - before ? *after : before;
}

/// Only stages that train a parameter have its value: a use without gradient stays with the nearest that has one.
void add_untrained_uses(const Graph& graph, Ranges& ranges) {
  const std::map<ValueId, std::vector<int>> trained = trained_uses(graph);
  std::unordered_map<ValueId, int> parameters;
  for (std::size_t p = 0; p < graph.parameters.size(); ++p) {
    parameters.emplace(graph.parameters[p].value, static_cast<int>(p));
  }
  for (int position = 0; position < static_cast<int>(graph.nodes.size()); ++position) {
    if (graph.nodes[position].flags.grad_mode) continue;
    for (const ValueId id : input_values(graph.nodes[position])) {
      const auto uses = trained.find(id);
      if (uses == trained.end()) continue;
      const int other = nearest(uses->second, position);
      ranges.push_back({std::min(position, other), std::max(position, other), Reason::kUntrainedUse,
                        parameters.at(id)});
    }
  }
}

/// Every microbatch finds the rows as the one before left them.
void add_rescaled(const Graph& graph, Ranges& ranges) {
  for (const int parameter : written_parameters(graph)) {
    ForbiddenRange range{-1, -1, Reason::kRescaled, parameter};
    for (int position = 0; position < static_cast<int>(graph.nodes.size()); ++position) {
      const std::vector<ValueId> inputs = input_values(graph.nodes[position]);
      if (std::ranges::find(inputs, graph.parameters[parameter].value) == inputs.end()) continue;
      if (range.first < 0) range.first = position;
      range.last = position;
    }
    ranges.push_back(range);
  }
}

void add_buffers(const Graph& graph, Ranges& ranges) {
  std::unordered_map<int, int> buffer_of;  // by storage
  for (std::size_t b = 0; b < graph.buffers.size(); ++b) {
    if (graph.buffers[b].policy == BufferPolicy::kReadOnly) continue;
    buffer_of.emplace(graph.values[graph.buffers[b].value].storage_id, static_cast<int>(b));
  }
  if (buffer_of.empty()) return;
  std::unordered_map<int, ForbiddenRange> touched;  // by buffer
  for (int position = 0; position < static_cast<int>(graph.nodes.size()); ++position) {
    for (const ValueId id : input_values(graph.nodes[position])) {
      const auto found = buffer_of.find(graph.values[id].storage_id);
      if (found == buffer_of.end()) continue;
      const int buffer = found->second;
      touched.try_emplace(buffer, ForbiddenRange{position, position, Reason::kBuffer, buffer})
          .first->second.last = position;
    }
  }
  for (const auto& [buffer, range] : touched) ranges.push_back(range);
}

/// Every stage has batch and constants as they were at first: nobody may read one in a later stage
/// than it was written in.
void add_changed(const Graph& graph, Ranges& ranges) {
  std::unordered_map<int, ForbiddenRange> changed;  // by storage
  for (int position = 0; position < static_cast<int>(graph.nodes.size()); ++position) {
    const Node& node = graph.nodes[position];
    for (const ValueId id : input_values(node)) {
      const auto found = changed.find(graph.values[id].storage_id);
      if (found == changed.end() || !is_outside(graph.values[id].source)) continue;
      found->second.last = position;
      found->second.subject = id;
    }
    for (const ValueId id : node.writes) {
      changed.try_emplace(graph.values[id].storage_id,
                          ForbiddenRange{position, position, Reason::kChanged, id});
    }
  }
  for (const auto& [storage, range] : changed) {
    if (range.last > range.first) ranges.push_back(range);
  }
}

/// A value that would be sent at cuts c with first < c <= last, after the last write to its memory.
struct Sent {
  ValueId value;
  int first;
  int last;
  bool is_stale;  ///< Made before that write, and not by it.
};

/// Where a stale value is sent and another value of its memory too.
void add_pairs(const std::vector<Sent>& sent, Ranges& ranges) {
  struct Change {
    int all = 0;
    int stale = 0;
  };
  std::map<int, Change> changes;
  ValueId subject = -1;
  for (const Sent& one : sent) {
    const int stale = one.is_stale ? 1 : 0;
    changes[one.first].all += 1;
    changes[one.first].stale += stale;
    changes[one.last].all -= 1;
    changes[one.last].stale -= stale;
    if (one.is_stale && (subject < 0 || one.value < subject)) subject = one.value;
  }
  Change now;
  for (auto at = changes.begin(); at != changes.end(); ++at) {
    now.all += at->second.all;
    now.stale += at->second.stale;
    if (now.all < 2 || now.stale == 0) continue;
    ranges.push_back({at->first, std::next(at)->first, Reason::kStaleView, subject});
  }
}

/// Once memory has been written, torch makes the backward of its other views anew, at their next
/// use: later than that of uses that came before. A later stage gets such a view and its like apart
/// from each other, and their gradients would be added in another order than without the cut.
void add_stale_views(const Graph& graph, Ranges& ranges) {
  std::unordered_map<int, int> last_write;  // by storage
  std::unordered_map<ValueId, int> last_use;
  for (int position = 0; position < static_cast<int>(graph.nodes.size()); ++position) {
    const Node& node = graph.nodes[position];
    for (const ValueId id : input_values(node)) last_use[id] = position;
    for (const ValueId id : node.writes) last_write[graph.values[id].storage_id] = position;
  }
  const std::unordered_map<NodeId, int> positions = node_positions(graph);
  std::map<int, std::vector<Sent>> sent;  // by storage
  for (const auto& [id, use] : last_use) {
    const Value& value = graph.values[id];
    const auto write = last_write.find(value.storage_id);
    if (value.source != ValueSource::kNode || !value.requires_grad || write == last_write.end()) {
      continue;
    }
    const int made = positions.at(value.producer);
    const auto& written = graph.nodes[write->second].writes;
    const bool is_stale = made < write->second && std::ranges::find(written, id) == written.end();
    const int first = std::max(made, write->second);
    if (use > first) sent[value.storage_id].push_back({id, first, use, is_stale});
  }
  for (const auto& [storage, values] : sent) add_pairs(values, ranges);
}

/// A stage knows the shape of all that it receives.
void add_ragged(const Graph& graph, Ranges& ranges) {
  std::map<ValueId, ForbiddenRange> lives;
  for (int position = 0; position < static_cast<int>(graph.nodes.size()); ++position) {
    const Node& node = graph.nodes[position];
    for (const ValueId id : node.outputs) {
      if (id < 0 || !graph.values[id].is_ragged) continue;
      lives.try_emplace(id, ForbiddenRange{position, position, Reason::kRagged, id});
    }
    for (const ValueId id : input_values(node)) {
      if (const auto life = lives.find(id); life != lives.end()) life->second.last = position;
    }
  }
  for (const auto& [value, life] : lives) ranges.push_back(life);
}

Ranges forbidden_ranges(const Graph& graph) {
  Ranges ranges;
  add_stale_views(graph, ranges);
  add_changed(graph, ranges);
  add_storages(graph, ranges);
  add_parameters(graph, ranges);
  add_untrained_uses(graph, ranges);
  add_rescaled(graph, ranges);
  add_buffers(graph, ranges);
  add_ragged(graph, ranges);
  return ranges;
}

std::string node_text(const Graph& graph, int position) {
  const Node& node = graph.nodes[position];
  return "node " + std::to_string(node.id) + " '" + node.name + "' at " + std::to_string(position);
}

std::string production_text(const Graph& graph, const ForbiddenRange& range) {
  const std::string value = "value " + std::to_string(range.subject);
  if (range.first >= 0) return value + ", made by " + node_text(graph, range.first);
  for (const Input& input : graph.inputs) {
    if (input.value == range.subject) return "the input '" + input.name + "'";
  }
  return value;
}

std::string reason_text(const Graph& graph, const ForbiddenRange& range) {
  const std::string last = node_text(graph, range.last);
  switch (range.reason) {
    case Reason::kWrite:
      return "the memory of " + production_text(graph, range) +
             ", is written in place at or after the cut, last by " + last;
    case Reason::kStrided:
      return "the memory of " + production_text(graph, range) +
             ", is addressed by absolute offsets at or after the cut, last by " + last;
    case Reason::kManyUses:
      return "the parameter '" + graph.parameters[range.subject].name + "' has more than " +
             std::to_string(kMaxUseSites) + " uses, from " + node_text(graph, range.first) +
             " to " + last + ", which must stay together";
    case Reason::kUntrainedUse:
      return "the parameter '" + graph.parameters[range.subject].name +
             "' is used once with and once without gradient, by " + node_text(graph, range.first) +
             " and " + last + ", which must stay together";
    case Reason::kRescaled:
      return "rows of the parameter '" + graph.parameters[range.subject].name +
             "' are rescaled in place, and used from " + node_text(graph, range.first) + " to " +
             last + ", which must stay together";
    case Reason::kBuffer:
      return "the buffer '" + graph.buffers[range.subject].name + "' is written, and used from " +
             node_text(graph, range.first) + " to " + last + ", which must stay together";
    case Reason::kChanged:
      return "value " + std::to_string(range.subject) + " comes from outside, is written by " +
             node_text(graph, range.first) + " and read up to " + last +
             ", which must stay together";
    case Reason::kStaleView:
      return "value " + std::to_string(range.subject) + " is a view, made by node " +
             std::to_string(graph.values[range.subject].producer) +
             ", of memory that was written since; it and another value of that memory are used "
             "beyond the cut";
    case Reason::kRagged:
      return "the shape of value " + std::to_string(range.subject) + ", made by " +
             node_text(graph, range.first) + " and used up to " + last +
             ", depends on data (packed sequences)";
  }
  return "unknown reason";
}

}  // namespace

std::vector<bool> allowed_cuts(const Graph& graph) {
  const std::size_t num_nodes = graph.nodes.size();
  // Number of ranges that begin minus those that end at each position.
  std::vector<int> change(num_nodes + 2, 0);
  for (const ForbiddenRange& range : forbidden_ranges(graph)) {
    ++change[range.first + 1];
    --change[range.last + 1];
  }
  std::vector<bool> allowed(num_nodes + 1, false);
  int covering = 0;
  for (std::size_t cut = 0; cut < num_nodes; ++cut) {
    covering += change[cut];
    allowed[cut] = cut > 0 && covering == 0;
  }
  return allowed;
}

std::string why_forbidden(const Graph& graph, int cut) {
  const int num_nodes = static_cast<int>(graph.nodes.size());
  if (cut < 1 || cut >= num_nodes) {
    return "a cut lies between two nodes, at 1 to " + std::to_string(num_nodes - 1);
  }
  Ranges ranges = forbidden_ranges(graph);
  // The same reason whatever the order of hash tables.
  std::sort(ranges.begin(), ranges.end(), [](const ForbiddenRange& a, const ForbiddenRange& b) {
    return std::tuple(a.first, a.last, a.reason, a.subject) <
           std::tuple(b.first, b.last, b.reason, b.subject);
  });
  for (const ForbiddenRange& range : ranges) {
    if (range.first < cut && cut <= range.last) return reason_text(graph, range);
  }
  return "";
}

}  // namespace trireme::graph
