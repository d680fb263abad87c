#include "trireme/plan/simulate/bounds.h"

#include <algorithm>
#include <map>

#include "trireme/plan/layout/manual.h"

namespace trireme::simulate {

double plan_bound_us(const std::vector<StageCost>& costs, const layout::Plan& plan,
                     const topology::Topology& topology,
                     const std::vector<layout::Crossing>& crossings) {
  const layout::Role& role = layout::train_role(plan);
  const std::int64_t num_microbatches = plan.batch.num_microbatches() / role.mesh.data;
  const auto m = static_cast<double>(num_microbatches);
  std::vector<std::vector<int>> senders(costs.size());
  for (const layout::Crossing& crossing : crossings) {
    for (std::size_t i = 1; crossing.has_gradient && i < crossing.stages.size(); ++i) {
      senders[crossing.stages[i]].push_back(crossing.stages[0]);
    }
  }
  double bound = 0;
  std::vector<double> before(costs.size());
  std::map<int, double> work;  // By rank.
  for (std::size_t s = 0; s < costs.size(); ++s) {
    for (const int from : senders[s]) {
      before[s] =
          std::max(before[s], before[from] + costs[from].forward_us + costs[from].backward_us());
    }
    bound = std::max(bound, before[s] + m * costs[s].work_us());
    for (int r = 0; r < role.mesh.data; ++r) {
      work[role.placement[s * role.mesh.data + r]] += costs[s].work_us();
    }
  }
  for (const topology::SharedCores& shared : topology::shared_cores(topology)) {
    double sum = 0;
    for (const int rank : shared.ranks) sum += work.contains(rank) ? work.at(rank) : 0;
    bound = std::max(bound, m * sum / shared.num_cores);
  }
  return bound;
}

double any_plan_bound_us(double path_us, double work_us, std::int64_t num_microbatches,
                         double num_processors) {
  return std::max(path_us, static_cast<double>(num_microbatches) * work_us / num_processors);
}

}  // namespace trireme::simulate
