#include "trireme/plan/partition/less_memory.h"

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

/// A stage with one more means to hold less.
enum class Means : std::uint8_t { kRecompute, kOffload };

/// Whether `stage` can still have it, and the options leave it to the plan.
bool is_open(const Problem& problem, const graph::Graph& planned, const layout::Plan& plan,
             int stage, Means means) {
  const layout::Stage& own = plan.stages[stage];
  if (own.recompute || own.offload) return false;  // What is kept is little then.
  if (means == Means::kOffload) return problem.options.offload == Offload::kAuto;
  return problem.options.recompute == Recompute::kAuto &&
         layout::why_not_recomputed(planned, plan, stage).empty();
}

/// The stages that must, whatever the memory; nothing where none do.
std::optional<layout::Plan> with_all(const Problem& problem, const graph::Graph& planned,
                                     layout::Plan plan) {
  const bool recomputes = problem.options.recompute == Recompute::kAll;
  const bool offloads = problem.options.offload == Offload::kAll;
  if (!recomputes && !offloads) return std::nullopt;
  for (int s = 0; s < problem.num_stages; ++s) {
    layout::Stage& stage = plan.stages[s];
    stage.recompute = recomputes && layout::why_not_recomputed(planned, plan, s).empty();
    stage.offload = offloads;
  }
  return plan;
}

/// With one more stage that holds less, that which leaves least to be saved; nothing where none saves any.
std::optional<Candidate> with_one_more(const Problem& problem, const graph::Graph& planned,
                                       const Candidate& candidate) {
  std::optional<Candidate> best;
  std::pair least{total_excess(problem, candidate), kUnlimited};
  for (int s = 0; s < problem.num_stages; ++s) {
    if (excess_bytes(problem, candidate, s) <= 0) continue;
    for (const Means means : {Means::kRecompute, Means::kOffload}) {
      if (!is_open(problem, planned, candidate.plan, s, means)) continue;
      layout::Plan plan = candidate.plan;
      (means == Means::kRecompute ? plan.stages[s].recompute : plan.stages[s].offload) = true;
      Candidate other = forecast_of(problem, planned, std::move(plan));
      const std::pair left{total_excess(problem, other), other.forecast.simulation.step_us};
      if (left.first >= total_excess(problem, candidate) || left >= least) continue;
      least = left;
      best = std::move(other);
    }
  }
  return best;
}

}  // namespace

Candidate with_less_memory(const Problem& problem, Candidate candidate) {
  if (problem.options.recompute == Recompute::kNone && problem.options.offload == Offload::kNone) {
    return candidate;
  }
  const graph::Graph planned = layout::planned_graph(problem.recorded, candidate.plan);
  if (auto plan = with_all(problem, planned, candidate.plan)) {
    candidate = forecast_of(problem, planned, *std::move(plan));
  }
  while (total_excess(problem, candidate) > 0) {
    std::optional<Candidate> other = with_one_more(problem, planned, candidate);
    if (!other) break;
    candidate = *std::move(other);
  }
  return candidate;
}

}  // namespace trireme::partition
