#include "trireme/plan/simulate/bounds.h"

#include <algorithm>
#include <map>

#include "trireme/plan/layout/manual.h"

namespace trireme::simulate {

double plan_bound_us(const std::vector<StageCost>& costs, const layout::Plan& plan,
                     const topology::Topology& topology) {
  const layout::Role& role = layout::train_role(plan);
  const std::int64_t num_microbatches = plan.batch.num_microbatches() / role.mesh.data;
  const auto m = static_cast<double>(num_microbatches);
  double bound = 0, before = 0;
  std::map<int, double> work;  // By rank.
  for (std::size_t s = 0; s < costs.size(); ++s) {
    bound = std::max(bound, before + m * costs[s].work_us());
    before += costs[s].forward_us + costs[s].backward_us();
    for (int r = 0; r < role.mesh.data; ++r) {
      work[role.placement[s * role.mesh.data + r]] += costs[s].work_us();
    }
  }
  bound = std::max(bound, before);
  for (const topology::SharedCores& shared : topology::shared_cores(topology)) {
    double sum = 0;
    for (const int rank : shared.ranks) sum += work.contains(rank) ? work.at(rank) : 0;
    bound = std::max(bound, m * sum / shared.num_cores);
  }
  return bound;
}

double any_plan_bound_us(double work_us, std::int64_t num_microbatches, double num_processors) {
  return std::max(work_us, static_cast<double>(num_microbatches) * work_us / num_processors);
}

}  // namespace trireme::simulate
