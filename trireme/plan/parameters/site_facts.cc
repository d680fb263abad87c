#include "trireme/plan/parameters/site_facts.h"

#include <map>
#include <unordered_map>

#include "trireme/plan/graph/bytes.h"
#include "trireme/plan/graph/index.h"
#include "trireme/plan/graph/json.h"
#include "trireme/plan/graph/uses.h"
#include "trireme/plan/layout/manual.h"

namespace trireme::parameters::internal {
namespace {

/// The first norm block of each trainable parameter, used or not, in byte order of the names.
std::unordered_map<std::string, std::int64_t> first_norm_blocks(const graph::Graph& graph) {
  std::map<std::string, std::int64_t> elements;
  for (const graph::Parameter& parameter : graph.parameters) {
    const graph::Value& value = graph.values[parameter.value];
    if (value.requires_grad) elements[parameter.name] = graph::num_elements_at(value, 0);
  }
  std::unordered_map<std::string, std::int64_t> first;
  std::int64_t next = 0;
  for (const auto& [name, num_elements] : elements) {
    first[name] = next;
    next += num_norm_blocks(num_elements);
  }
  return first;
}

/// The stage that keeps the parameter `name`, whose first use is in stage `first`.
int owner_stage(const layout::Plan& plan, const std::string& name, int first) {
  for (const layout::TieOwner& owner : plan.tie_owners) {
    if (owner.parameter == name) return owner.stage;
  }
  return first;
}

}  // namespace

std::vector<SiteFacts> site_facts(const graph::Graph& graph, const layout::Plan& plan) {
  const auto positions = graph::node_positions(graph);
  const auto norm_blocks = first_norm_blocks(graph);
  std::vector<SiteFacts> facts;
  int owner = 0;
  for (const graph::UseSite& site : graph::use_sites(graph)) {
    const graph::Parameter& parameter = graph.parameters[site.parameter];
    const graph::Value& value = graph.values[parameter.value];
    const int position = positions.at(site.nodes.front());
    const int stage = layout::stage_of(plan, position);
    const bool is_first = facts.empty() || facts.back().parameter_index != site.parameter;
    if (is_first) owner = owner_stage(plan, parameter.name, stage);
    // Sites are in node order, so those of one stage are neighbours.
    const bool is_first_of_stage = is_first || facts.back().stage != stage;
    const BucketKind kind = !is_first_of_stage ? BucketKind::kSite
                            : stage == owner   ? BucketKind::kOwner
                                               : BucketKind::kMirror;
    facts.push_back({parameter.name, site.parameter, site.site, stage, position, kind, value.dtype,
                     graph::num_elements_at(value, 0), norm_blocks.at(parameter.name)});
  }
  return facts;
}

std::string recorded_sha256(const graph::Graph& graph, const layout::Plan& plan) {
  return plan.copied_nodes.empty() ? graph::graph_sha256(graph) : plan.graph_sha256;
}

}  // namespace trireme::parameters::internal
