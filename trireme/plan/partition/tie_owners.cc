#include "trireme/plan/partition/tie_owners.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "trireme/plan/graph/bytes.h"
#include "trireme/plan/graph/index.h"
#include "trireme/plan/graph/uses.h"
#include "trireme/plan/layout/manual.h"
#include "trireme/plan/layout/planned_graph.h"
#include "trireme/plan/parameters/parameter_map.h"

namespace trireme::partition {
namespace {

/// A parameter that several stages use.
struct Shared {
  std::string name;
  std::int64_t num_elements = 0;
  std::set<int> stages;
};

std::vector<Shared> largest_shared(const graph::Graph& planned, const layout::Plan& plan) {
  constexpr std::size_t kMost = 8;
  const auto positions = graph::node_positions(planned);
  std::map<int, Shared> all;
  for (const graph::UseSite& site : graph::use_sites(planned)) {
    const graph::Parameter& parameter = planned.parameters[site.parameter];
    Shared& shared = all[site.parameter];
    shared.name = parameter.name;
    shared.num_elements = graph::num_elements_at(planned.values[parameter.value], 0);
    shared.stages.insert(layout::stage_of(plan, positions.at(site.nodes.front())));
  }
  std::vector<Shared> result;
  for (auto& [index, shared] : all) {
    if (shared.stages.size() > 1) result.push_back(std::move(shared));
  }
  std::ranges::stable_sort(result, std::greater{}, &Shared::num_elements);
  result.resize(std::min(result.size(), kMost));
  return result;
}

}  // namespace

Candidate with_tie_owners(const Problem& problem, Candidate candidate) {
  const graph::Graph planned = layout::planned_graph(problem.recorded, candidate.plan);
  // Not slower than it is, where memory is the objective.
  const Goal goal{problem.options.objective, candidate.forecast.simulation.step_us};
  for (const Shared& shared : largest_shared(planned, candidate.plan)) {
    const int emptiest = *std::ranges::min_element(
        shared.stages, {}, [&](int stage) { return excess_bytes(problem, candidate, stage); });
    if (emptiest == *shared.stages.begin()) continue;
    layout::Plan plan = candidate.plan;
    plan.tie_owners.push_back({shared.name, emptiest});
    const auto map =
        parameters::make_parameter_map(planned, plan, {.graph_sha256 = problem.graph_sha256});
    simulate::Forecast forecast = simulate::forecast(
        {planned, plan, map, problem.profile, problem.topology}, problem.options.forecast);
    Candidate other{std::move(plan), std::move(forecast)};
    if (score(problem, other, goal) < score(problem, candidate, goal)) candidate = std::move(other);
  }
  return candidate;
}

}  // namespace trireme::partition
