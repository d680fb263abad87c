#include "trireme/plan/partition/finished_plan.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "trireme/plan/partition/bucket_size.h"
#include "trireme/plan/partition/explain.h"
#include "trireme/plan/partition/less_memory.h"
#include "trireme/plan/profile/profile_json.h"
#include "trireme/plan/topology/topology_json.h"

namespace trireme::partition {
namespace {

std::vector<std::int64_t> expected_peaks(const Problem& problem, const Candidate& candidate) {
  const graph::Graph planned = layout::planned_graph(problem.recorded, candidate.plan);
  const layout::ParameterMap map = layout::make_parameter_map(planned, candidate.plan);
  std::vector<std::int64_t> peaks;
  for (const simulate::RankMemory& rank :
       simulate::expected_memory({planned, candidate.plan, map, problem.profile, problem.topology},
                                 candidate.forecast, problem.options.forecast.memory)) {
    peaks.push_back(rank.total());
  }
  return peaks;
}

Prediction predict(const Problem& problem, const Candidate& candidate) {
  const simulate::Forecast& forecast = candidate.forecast;
  Prediction prediction;
  prediction.step_ms = forecast.simulation.step_us / 1000;
  prediction.lower_bound_ms = forecast.any_bound_us / 1000;
  for (const simulate::RankMemory& rank : forecast.memory) {
    prediction.peak_bytes.push_back(rank.by_kind());
  }
  prediction.expected_peak_bytes = expected_peaks(problem, candidate);
  prediction.limits = stage_limits(problem, candidate);
  return prediction;
}

}  // namespace

Candidate finished(const Problem& problem, Candidate candidate, double most_us) {
  if (problem.options.may_choose_owners) candidate = with_tie_owners(problem, std::move(candidate));
  candidate = with_less_memory(problem, std::move(candidate), most_us);
  return with_bucket_size(problem, std::move(candidate));
}

layout::Plan finished_plan(const Problem& problem, Candidate candidate) {
  candidate.plan.threads = problem.profile.threads;
  candidate.plan.profile_sha256 = profile::profile_sha256(problem.profile);
  candidate.plan.topology_sha256 = topology::topology_sha256(problem.topology);
  candidate.plan.prediction = predict(problem, candidate);
  return std::move(candidate.plan);
}

}  // namespace trireme::partition
