#include "trireme/plan/layout/matching_cuts.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "trireme/base/error.h"
#include "trireme/plan/graph/bytes.h"
#include "trireme/plan/graph/cuts.h"
#include "trireme/plan/graph/index.h"
#include "trireme/plan/layout/crossings.h"

namespace trireme::layout {
namespace {

using graph::Graph;
using graph::ValueId;

/// Stages that hold each trainable parameter and written buffer, by name.
std::map<std::string, std::set<int>> holders(const Graph& planned, const Plan& plan) {
  const auto stages = stages_of_values(planned, plan);
  std::map<std::string, std::set<int>> result;
  const auto add = [&](const std::string& name, ValueId value) {
    const auto found = stages.find(value);
    if (found != stages.end()) result[name] = found->second;
  };
  for (const graph::Parameter& parameter : planned.parameters) {
    if (planned.values[parameter.value].requires_grad) add(parameter.name, parameter.value);
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

}  // namespace

std::vector<int> matching_cuts(const Graph& planned, const Plan& plan, const Graph& other) {
  const auto stages = stages_of_nodes(planned, plan, other);
  const std::vector<bool> allowed = graph::allowed_cuts(other);
  const std::vector<std::int64_t> bytes = bytes_across(other);
  const auto num_nodes = static_cast<int>(other.nodes.size());
  std::vector<int> cuts;
  int begin = 0;
  for (int stage = 0; stage + 1 < static_cast<int>(plan.stages.size()); ++stage) {
    const auto must_be_later = [&](int p) {
      return !stages[p].empty() && *stages[p].rbegin() > stage && !stages[p].contains(stage);
    };
    const auto must_be_here = [&](int p) {
      return !stages[p].empty() && *stages[p].rbegin() <= stage;
    };
    int end = begin;
    while (end < num_nodes && !must_be_later(end)) ++end;
    int first = begin + 1;
    for (int p = begin; p < num_nodes; ++p) {
      if (must_be_here(p)) first = p + 1;
    }
    int best = -1;
    for (int cut = first; cut <= std::min(end, num_nodes - 1); ++cut) {
      if (allowed[cut] && (best < 0 || bytes[cut] < bytes[best])) best = cut;
    }
    if (best < 0) {
      throw Error(ErrorKind::kInvalidArgument,
                  "no cut of the other recording gives stage " + std::to_string(stage) +
                      " the parameters that it holds in the plan; the first node that needs a "
                      "later stage is " +
                      (end < num_nodes ? other.nodes[end].name : std::string("none")));
    }
    cuts.push_back(best);
    begin = best;
  }
  return cuts;
}

}  // namespace trireme::layout
