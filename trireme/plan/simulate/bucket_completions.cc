#include "trireme/plan/simulate/bucket_completions.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "trireme/plan/graph/bytes.h"
#include "trireme/plan/graph/index.h"
#include "trireme/plan/graph/uses.h"
#include "trireme/plan/layout/crossings.h"

namespace trireme::simulate {
namespace {

/// Position of the node whose backward completes a site, by parameter and site.
using LastNodes = std::map<std::pair<std::string, int>, int>;

/// Work of each node's backward, additions to sums included; by position.
std::vector<double> backward_work(const graph::Graph& planned, const profile::Profile& profile,
                                  LastNodes& last_nodes) {
  const auto times = profile::node_times(profile, planned);
  const auto positions = graph::node_positions(planned);
  std::vector<double> work(times.size());
  for (std::size_t p = 0; p < work.size(); ++p) work[p] = times[p].backward_us();
  for (const graph::UseSite& site : graph::use_sites(planned)) {
    const graph::Parameter& parameter = planned.parameters[site.parameter];
    const auto elements =
        static_cast<double>(graph::num_elements_at(planned.values[parameter.value], 0));
    const int position = positions.at(site.nodes.front());
    last_nodes[{parameter.name, site.site}] = position;
    work[position] += elements * profile.step.fold_ns / 1000;
  }
  return work;
}

}  // namespace

std::vector<double> bucket_completions(const graph::Graph& planned, const layout::Plan& plan,
                                       const parameters::ParameterMap& map,
                                       const profile::Profile& profile) {
  LastNodes last_nodes;
  const std::vector<double> work = backward_work(planned, profile, last_nodes);
  const auto positions = layout::stage_positions(planned, plan);
  std::vector<double> total(positions.size());
  std::vector<std::map<int, double>> done(positions.size());  // By stage and position.
  for (std::size_t s = 0; s < positions.size(); ++s) {
    for (auto p = positions[s].rbegin(); p != positions[s].rend(); ++p) {
      total[s] += work[*p];
      done[s][*p] = total[s];
    }
  }
  std::vector<double> completions;
  for (const parameters::Bucket& bucket : map.buckets) {
    double latest = 0;
    for (const parameters::Slot& slot : bucket.slots) {
      const int position = last_nodes.at({slot.parameter, slot.site});
      latest = std::max(latest, done[bucket.stage][position]);
    }
    completions.push_back(total[bucket.stage] > 0 ? latest / total[bucket.stage] : 0);
  }
  return completions;
}

}  // namespace trireme::simulate
