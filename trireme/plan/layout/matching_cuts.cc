#include "trireme/plan/layout/matching_cuts.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "trireme/error.h"
#include "trireme/plan/graph/cuts.h"
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
      std::set<int> both;
      std::set_intersection(stages.begin(), stages.end(), held->second.begin(), held->second.end(),
                            std::inserter(both, both.begin()));
      stages = stages.empty() ? held->second : both;
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

/// The best way to give nodes 0 .. c-1 to the stages up to one, by c.
struct Prefix {
  std::int64_t bytes = kNever;  ///< Over all its cuts, c included.
  int begin = -1;               ///< Where its last stage begins.
};
using Prefixes = std::vector<Prefix>;

/// Appends a stage of at least one node to each of `before`. may_run: nodes that the stage may run;
/// cost: of ending it at c, kNever where it may not.
Prefixes append_stage(const Prefixes& before, const std::vector<bool>& may_run,
                      const std::vector<std::int64_t>& cost) {
  Prefixes result(before.size());
  Prefix best;  // of the beginnings from which the stage may reach c
  for (std::size_t c = 1; c < before.size(); ++c) {
    if (before[c - 1].bytes < best.bytes) best = {before[c - 1].bytes, static_cast<int>(c) - 1};
    if (!may_run[c - 1]) best = {};
    if (best.bytes != kNever && cost[c] != kNever) result[c] = {best.bytes + cost[c], best.begin};
  }
  return result;
}

[[noreturn]] void refuse(const Graph& other, const Prefixes& before, int stage,
                         const std::vector<bool>& may_run) {
  std::size_t p = 0;
  while (p + 1 < may_run.size() && before[p].bytes == kNever) ++p;  // the earliest beginning
  while (p + 1 < may_run.size() && may_run[p]) ++p;
  throw Error(ErrorKind::kInvalidArgument,
              "no cuts of the other recording give stage " + std::to_string(stage) +
                  " nodes that use the parameters which it holds in the plan, and no others; see "
                  "node '" +
                  other.nodes[p].name + "'; cut elsewhere");
}

}  // namespace

std::vector<graph::NodeId> matching_order(const Graph& planned, const Plan& plan,
                                          const Graph& other) {
  const auto may_run = stages_of_nodes(planned, plan, other);
  const std::vector<std::vector<int>> later = graph::later_nodes(other);
  std::vector<int> stages(other.nodes.size(), 0), order(other.nodes.size());
  for (std::size_t p = 0; p < other.nodes.size(); ++p) {
    const auto first = may_run[p].lower_bound(stages[p]);
    if (first != may_run[p].end()) stages[p] = *first;
    for (const int after : later[p]) stages[after] = std::max(stages[after], stages[p]);
  }
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](int p) { return stages[p]; });
  std::vector<graph::NodeId> ids;
  for (const int p : order) ids.push_back(other.nodes[p].id);
  return ids;
}

std::vector<int> matching_cuts(const Graph& planned, const Plan& plan, const Graph& other) {
  const auto stages = stages_of_nodes(planned, plan, other);
  const std::vector<bool> allowed = graph::allowed_cuts(other);
  std::vector<std::int64_t> cost = bytes_across(other);
  for (std::size_t c = 0; c < cost.size(); ++c) {
    const bool is_end = c + 1 == cost.size();
    if (!is_end && !allowed[c]) cost[c] = kNever;
  }
  std::vector<Prefixes> prefixes = {Prefixes(cost.size())};
  prefixes[0][0].bytes = 0;
  const auto num_stages = static_cast<int>(plan.stages.size());
  for (int stage = 0; stage < num_stages; ++stage) {
    std::vector<bool> may_run;
    for (const std::set<int>& of_node : stages) {
      may_run.push_back(of_node.empty() || of_node.contains(stage));
    }
    prefixes.push_back(append_stage(prefixes.back(), may_run, cost));
    const Prefixes& made = prefixes.back();
    const bool is_possible = stage + 1 == num_stages
                                 ? made.back().bytes != kNever
                                 : std::any_of(made.begin(), made.end(), [](const Prefix& prefix) {
                                     return prefix.bytes != kNever;
                                   });
    if (!is_possible) refuse(other, prefixes[stage], stage, may_run);
  }
  std::vector<int> cuts;
  int end = static_cast<int>(other.nodes.size());
  for (int stage = num_stages - 1; stage > 0; --stage) {
    end = prefixes[stage + 1][end].begin;
    cuts.insert(cuts.begin(), end);
  }
  return cuts;
}

}  // namespace trireme::layout
