#include "trireme/plan/partition/more_regions.h"

#include <utility>
#include <vector>

#include "trireme/plan/layout/choose_regions.h"
#include "trireme/plan/layout/plan_check.h"

namespace trireme::partition {
namespace {

/// Numbers of regions that are tried.
constexpr int kNumbers[] = {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};

/// Plans with more regions of a stage, each number once.
std::vector<layout::Plan> with_regions_of(const graph::Graph& planned, const layout::Plan& plan,
                                          int stage) {
  std::vector<layout::Plan> plans;
  std::size_t most = plan.stages[stage].regions.size();
  for (const int num : kNumbers) {
    layout::Plan other = plan;
    layout::Stage& own = other.stages[stage];
    own.recompute = true;
    own.regions = layout::even_regions(planned, plan, stage, num);
    if (own.regions.size() <= most) continue;
    most = own.regions.size();
    plans.push_back(std::move(other));
  }
  return plans;
}

}  // namespace

std::optional<Candidate> with_more_regions(const Problem& problem, const graph::Graph& planned,
                                           const Candidate& candidate) {
  const std::int64_t before = total_excess(problem, candidate);
  std::optional<Candidate> best;
  std::pair least{before, kUnlimited};
  for (int s = 0; s < problem.num_stages; ++s) {
    if (excess_bytes(problem, candidate, s) <= 0 || candidate.plan.stages[s].offload) continue;
    if (!layout::why_not_recomputed(planned, candidate.plan, s).empty()) continue;
    for (layout::Plan& plan : with_regions_of(planned, candidate.plan, s)) {
      Candidate other = forecast_of(problem, planned, std::move(plan));
      const std::pair left{total_excess(problem, other), other.forecast.simulation.step_us};
      if (left.first >= before || left >= least) continue;
      least = left;
      best = std::move(other);
    }
  }
  return best;
}

Candidate with_best_regions(const Problem& problem, const graph::Graph& planned,
                            Candidate candidate) {
  for (int s = 0; s < problem.num_stages; ++s) {
    if (!candidate.plan.stages[s].recompute) continue;
    for (layout::Plan& plan : with_regions_of(planned, candidate.plan, s)) {
      Candidate other = forecast_of(problem, planned, std::move(plan));
      if (excess_bytes(problem, other, s) < excess_bytes(problem, candidate, s)) {
        candidate = std::move(other);
      }
    }
  }
  return candidate;
}

}  // namespace trireme::partition
