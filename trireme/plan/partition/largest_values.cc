#include "trireme/plan/partition/largest_values.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/graph/text_table.h"

namespace trireme::partition {
namespace {

/// A tensor's bytes, and what it is called.
using Sized = std::pair<std::int64_t, std::string>;

/// By storage, since several values may share one.
std::map<int, Sized> values_of(const graph::Graph& planned, const layout::Plan& plan, int stage) {
  std::map<graph::ValueId, std::string> parameters;
  for (const graph::Parameter& parameter : planned.parameters) {
    parameters[parameter.value] = parameter.name;
  }
  std::map<int, Sized> found;
  const auto add = [&](graph::ValueId id, const std::string& name) {
    const graph::Value& value = planned.values[id];
    const std::int64_t bytes = graph::bytes_at(value, plan.batch.microbatch);
    found.emplace(value.storage_id, Sized{bytes, name});
  };
  const layout::Stage& range = plan.stages[stage];
  for (int position = range.begin; position < range.end; ++position) {
    const graph::Node& node = planned.nodes[position];
    for (const graph::ValueId id : graph::input_values(node)) {
      if (parameters.contains(id)) add(id, parameters.at(id));
    }
    if (node.flags.view) continue;
    for (const graph::ValueId id : node.outputs) {
      if (id >= 0) add(id, "of each microbatch " + node.name);
    }
  }
  return found;
}

}  // namespace

std::string largest_values(const graph::Graph& planned, const layout::Plan& plan, int stage) {
  std::vector<Sized> values;
  for (auto& [storage, value] : values_of(planned, plan, stage)) values.push_back(std::move(value));
  const std::size_t count = std::min<std::size_t>(3, values.size());
  std::ranges::partial_sort(values, values.begin() + static_cast<std::ptrdiff_t>(count),
                            [](const Sized& a, const Sized& b) {
                              return std::pair(b.first, a.second) < std::pair(a.first, b.second);
                            });
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += (i == 0 ? "" : ", ") + values[i].second + " " + graph::bytes_text(values[i].first);
  }
  return text;
}

}  // namespace trireme::partition
