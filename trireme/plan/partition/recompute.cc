#include "trireme/plan/partition/recompute.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "trireme/plan/layout/plan_check.h"

namespace trireme::partition {
namespace {

/// Of all positions of the pipeline, what their ranks exceed their memory by.
std::int64_t total_excess(const Problem& problem, const Candidate& candidate) {
  std::map<int, std::int64_t> excess;
  for (int s = 0; s < problem.num_stages; ++s) {
    excess[problem.position(s)] = std::max<std::int64_t>(0, excess_bytes(problem, candidate, s));
  }
  std::int64_t total = 0;
  for (const auto& [position, bytes] : excess) total += bytes;
  return total;
}

Candidate with_all(const Problem& problem, const graph::Graph& planned, layout::Plan plan) {
  for (int s = 0; s < problem.num_stages; ++s) {
    plan.stages[s].recompute = layout::why_not_recomputed(planned, plan, s).empty();
  }
  return forecast_of(problem, planned, std::move(plan));
}

/// With one more stage that recomputes, that which leaves least to be saved; nothing where none saves any.
std::optional<Candidate> with_one_more(const Problem& problem, const graph::Graph& planned,
                                       const Candidate& candidate) {
  std::optional<Candidate> best;
  std::pair least{total_excess(problem, candidate), kUnlimited};
  for (int s = 0; s < problem.num_stages; ++s) {
    if (candidate.plan.stages[s].recompute || excess_bytes(problem, candidate, s) <= 0) continue;
    if (!layout::why_not_recomputed(planned, candidate.plan, s).empty()) continue;
    layout::Plan plan = candidate.plan;
    plan.stages[s].recompute = true;
    Candidate other = forecast_of(problem, planned, std::move(plan));
    const std::pair left{total_excess(problem, other), other.forecast.simulation.step_us};
    if (left.first >= total_excess(problem, candidate) || left >= least) continue;
    least = left;
    best = std::move(other);
  }
  return best;
}

}  // namespace

Candidate with_recompute(const Problem& problem, Candidate candidate) {
  const Recompute wanted = problem.options.recompute;
  if (wanted == Recompute::kNone) return candidate;
  const graph::Graph planned = layout::planned_graph(problem.recorded, candidate.plan);
  if (wanted == Recompute::kAll) return with_all(problem, planned, std::move(candidate.plan));
  while (total_excess(problem, candidate) > 0) {
    std::optional<Candidate> other = with_one_more(problem, planned, candidate);
    if (!other) break;
    candidate = *std::move(other);
  }
  return candidate;
}

}  // namespace trireme::partition
