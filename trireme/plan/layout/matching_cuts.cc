#include "trireme/plan/layout/matching_cuts.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "trireme/error.h"
#include "trireme/plan/graph/cuts.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/graph/node_order.h"
#include "trireme/plan/layout/crossings.h"

namespace trireme::layout {
namespace {

using graph::Graph;
using graph::ValueId;

/// Stages that hold each parameter and written buffer, by name.
std::map<std::string, std::set<int>> holders(const Graph& planned, const Plan& plan) {
  const auto stages = stages_of_values(planned, plan);
  std::map<std::string, std::set<int>> result;
  const auto add = [&](const std::string& name, ValueId value) {
    const auto found = stages.find(value);
    if (found != stages.end()) result[name] = found->second;
  };
  for (const graph::Parameter& parameter : planned.parameters) {
    add(parameter.name, parameter.value);
  }
  for (const graph::Buffer& buffer : planned.buffers) {
    if (buffer.policy != graph::BufferPolicy::kReadOnly) add(buffer.name, buffer.value);
  }
  return result;
}

/// Of sets that stand for all where they are empty.
std::set<int> common_stages(const std::set<int>& one, const std::set<int>& other) {
  if (one.empty() || other.empty()) return one.empty() ? other : one;
  std::set<int> both;
  std::ranges::set_intersection(one, other, std::inserter(both, both.begin()));
  return both;
}

/// Stages in which each node of `other` may be; empty sets stand for all.
std::vector<std::set<int>> stages_of_nodes(const Graph& planned, const Plan& plan,
                                           const Graph& other) {
  const auto by_name = holders(planned, plan);
  std::map<ValueId, std::set<int>> by_value;
  const auto add = [&](const std::string& name, ValueId value) {
    const auto found = by_name.find(name);
    if (found != by_name.end()) by_value[value] = found->second;
  };
  for (const graph::Parameter& parameter : other.parameters) add(parameter.name, parameter.value);
  for (const graph::Buffer& buffer : other.buffers) add(buffer.name, buffer.value);
  std::vector<std::set<int>> result;
  for (const graph::Node& node : other.nodes) {
    std::set<int> stages;
    for (const ValueId value : graph::input_values(node)) {
      const auto held = by_value.find(value);
      if (held == by_value.end()) continue;
      stages = common_stages(stages, held->second);
    }
    result.push_back(std::move(stages));
  }
  return result;
}

/// Bytes of the values that are made before a cut and used behind it, by cut, for one sample.
std::vector<std::int64_t> bytes_across(const Graph& graph) {
  const auto positions = graph::node_positions(graph);
  std::map<ValueId, int> last_use;
  for (std::size_t p = 0; p < graph.nodes.size(); ++p) {
    for (const ValueId value : graph::input_values(graph.nodes[p])) {
      last_use[value] = static_cast<int>(p);
    }
  }
  std::vector<std::int64_t> result(graph.nodes.size() + 1);
  for (const auto& [value, last] : last_use) {
    if (graph.values[value].source != graph::ValueSource::kNode) continue;
    const int made = positions.at(graph.values[value].producer);
    for (int cut = made + 1; cut <= last; ++cut)
      result[cut] += graph::bytes_at(graph.values[value], 1);
  }
  return result;
}

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

/// Of a way to cut: first come stages that have nothing to run, then bytes to send. The default is of no way.
struct Cost {
  int empty_stages = std::numeric_limits<int>::max();
  std::int64_t bytes = kNever;

  auto operator<=>(const Cost&) const = default;
};
constexpr Cost kNoWay;

/// The best way to give nodes 0 .. c-1 to the stages up to one, by c.
struct Prefix {
  Cost cost;       ///< Over all its cuts, c included.
  int begin = -1;  ///< Where its last stage begins.
};
using Prefixes = std::vector<Prefix>;

/// Appends a stage to each of `before`. may_run: nodes that the stage may run; bytes: of ending it at c, kNever where
/// it may not.
Prefixes append_stage(const Prefixes& before, const std::vector<bool>& may_run,
                      const std::vector<std::int64_t>& bytes) {
  Prefixes result(before.size());
  Prefix best;  // of the beginnings from which the stage may reach c
  for (std::size_t c = 0; c < before.size(); ++c) {
    const Cost& nothing = before[c].cost;  // where the stage runs nothing
    if (nothing != kNoWay) {
      result[c] = {{nothing.empty_stages + 1, nothing.bytes}, static_cast<int>(c)};
    }
    if (c == 0) continue;
    if (before[c - 1].cost < best.cost) best = {before[c - 1].cost, static_cast<int>(c) - 1};
    if (!may_run[c - 1]) best = {};
    if (best.cost == kNoWay || bytes[c] == kNever) continue;
    const Cost cost{best.cost.empty_stages, best.cost.bytes + bytes[c]};
    if (cost < result[c].cost) result[c] = {cost, best.begin};
  }
  return result;
}

/// Names the first node that needs a stage before one that its predecessors need; where there is none, the last that
/// begins a stage: no cut may fall where one has to.
[[noreturn]] void refuse(const Graph& other, const std::vector<std::set<int>>& stages) {
  std::size_t named = 0;
  int stage = 0;
  bool is_behind = false;
  for (std::size_t p = 0; p < stages.size() && !is_behind; ++p) {
    if (stages[p].empty() || stages[p].contains(stage)) continue;
    named = p;
    const auto next = stages[p].upper_bound(stage);
    is_behind = next == stages[p].end();
    if (!is_behind) stage = *next;
  }
  const std::string node = "node '" + other.nodes[named].name + "' ";
  const int own = stages[named].empty() ? 0 : *stages[named].begin();
  throw Error(ErrorKind::kInvalidArgument,
              "the other recording cannot be cut as the plan is: " + node + "uses some of stage " +
                  std::to_string(own) +
                  (is_behind ? "'s parameters, and a node before it some of a later stage"
                             : "'s parameters, and no cut may fall between it and what is before") +
                  "; cut elsewhere");
}

/// Ids of the nodes: each is in the first stage that may run it, and those between which no cut may fall are in one.
std::vector<graph::NodeId> matching_order(const Graph& planned, const Plan& plan,
                                          const Graph& other) {
  const auto may_run = stages_of_nodes(planned, plan, other);
  const std::vector<bool> allowed = graph::allowed_cuts(other);
  const std::vector<std::vector<int>> later = graph::later_nodes(other);
  std::vector<int> stages(other.nodes.size(), 0), order(other.nodes.size());
  std::size_t end = 0;
  for (std::size_t begin = 0; begin < other.nodes.size(); begin = end) {
    std::set<int> both;
    int first = 0;
    for (end = begin; end == begin || (end < other.nodes.size() && !allowed[end]); ++end) {
      both = common_stages(both, may_run[end]);
      first = std::max(first, stages[end]);
    }
    const auto stage = both.lower_bound(first);
    for (std::size_t p = begin; p < end; ++p) {
      stages[p] = stage == both.end() ? first : *stage;
      for (const int after : later[p]) stages[after] = std::max(stages[after], stages[p]);
    }
  }
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](int p) { return stages[p]; });
  std::vector<graph::NodeId> ids;
  for (const int p : order) ids.push_back(other.nodes[p].id);
  return ids;
}

}  // namespace

Graph matching_graph(const Graph& planned, const Plan& plan, const Graph& other) {
  Graph result = other;
  for (graph::Value& value : result.values) value.requires_grad = false;
  if (plan.node_order.empty()) return result;
  return graph::reordered(result, matching_order(planned, plan, result));
}

std::vector<int> matching_cuts(const Graph& planned, const Plan& plan, const Graph& other) {
  const auto stages = stages_of_nodes(planned, plan, other);
  const std::vector<bool> allowed = graph::allowed_cuts(other);
  std::vector<std::int64_t> bytes = bytes_across(other);
  for (std::size_t c = 0; c + 1 < bytes.size(); ++c) {
    if (!allowed[c]) bytes[c] = kNever;
  }
  std::vector<Prefixes> prefixes = {Prefixes(bytes.size())};
  prefixes[0][0].cost = {0, 0};
  const auto num_stages = static_cast<int>(plan.stages.size());
  for (int stage = 0; stage < num_stages; ++stage) {
    std::vector<bool> may_run;
    for (const std::set<int>& of_node : stages) {
      may_run.push_back(of_node.empty() || of_node.contains(stage));
    }
    prefixes.push_back(append_stage(prefixes.back(), may_run, bytes));
  }
  if (prefixes.back().back().cost == kNoWay) refuse(other, stages);
  std::vector<int> cuts;
  int end = static_cast<int>(other.nodes.size());
  for (int stage = num_stages - 1; stage > 0; --stage) {
    end = prefixes[stage + 1][end].begin;
    cuts.insert(cuts.begin(), end);
  }
  return cuts;
}

Plan matching_plan(const Graph& planned, const Plan& plan, const Graph& other) {
  const std::vector<int> cuts = matching_cuts(planned, plan, other);
  Plan result;
  result.graph_sha256 = graph::graph_sha256(other);
  result.batch = plan.batch;
  result.roles = plan.roles;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    Stage stage;
    stage.begin = s == 0 ? 0 : cuts[s - 1];
    stage.end = s < cuts.size() ? cuts[s] : static_cast<int>(other.nodes.size());
    stage.position = plan.stages[s].position;
    result.stages.push_back(stage);
  }
  return result;
}

}  // namespace trireme::layout
