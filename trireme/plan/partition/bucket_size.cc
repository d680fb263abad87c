#include "trireme/plan/partition/bucket_size.h"

#include <cstdint>
#include <utility>

#include "trireme/plan/layout/plan.h"

namespace trireme::partition {
namespace {

constexpr std::int64_t kLeastBytes = 64 << 10;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;

/// Less would be said of a forecast than it knows.
constexpr double kLeastGain = 0.001;

/// Goes on doubling, or halving, while the step gets shorter.
Candidate climbed(const Problem& problem, const graph::Graph& planned, Candidate best,
                  bool doubles) {
  for (;;) {
    layout::Plan plan = best.plan;
    plan.bucket_bytes = doubles ? 2 * plan.bucket_bytes : plan.bucket_bytes / 2;
    if (plan.bucket_bytes < kLeastBytes || plan.bucket_bytes > kMostBytes) return best;
    Candidate next = forecast_of(problem, planned, std::move(plan));
    const double step_us = best.forecast.simulation.step_us;
    if (next.forecast.simulation.step_us > (1 - kLeastGain) * step_us) return best;
    best = std::move(next);
  }
}

}  // namespace

Candidate with_bucket_size(const Problem& problem, Candidate candidate) {
  if (problem.options.replicas == 1) return candidate;
  const graph::Graph planned = layout::planned_graph(problem.recorded, candidate.plan);
  Candidate smaller = climbed(problem, planned, candidate, false);
  Candidate larger = climbed(problem, planned, std::move(candidate), true);
  const bool is_larger = larger.forecast.simulation.step_us < smaller.forecast.simulation.step_us;
  return is_larger ? std::move(larger) : std::move(smaller);
}

}  // namespace trireme::partition
