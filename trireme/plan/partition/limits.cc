#include "trireme/plan/partition/limits.h"

#include <algorithm>
#include <cstdio>

#include "trireme/plan/graph/table.h"

namespace trireme::partition {
namespace {

constexpr double kNearlyFull = 0.9;
constexpr double kNearlyAll = 0.9;

std::string whole_percent(double part) {
  char text[400];
  std::snprintf(text, sizeof text, "%.0f %%", 100 * part);
  return text;
}

/// Kinds and bytes, largest first.
std::vector<std::pair<std::int64_t, std::string>> largest_kinds(const simulate::RankMemory& rank) {
  std::vector<std::pair<std::int64_t, std::string>> kinds;
  for (const auto& [kind, bytes] : rank.by_kind()) kinds.emplace_back(bytes, kind);
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  return kinds;
}

/// The objective does not matter: the search has tried the cuts of least memory.
std::string advice(const Problem& problem, const Candidate& candidate, const std::string& kind) {
  std::string text = "use more stages";
  if (kind == "activations") {
    if (candidate.plan.schedule.name == "simple" && problem.num_stages > 1) {
      text += ", the schedule interleaved";
    }
    if (problem.options.batch.microbatch > 1) text += ", a smaller microbatch";
  }
  if (kind == "gradients" && problem.options.batch.lanes > problem.options.replicas) {
    text += ", fewer lanes";
  }
  if (kind == "transient" && problem.options.batch.microbatch > 1) text += ", a smaller microbatch";
  return text + ", or ranks with more memory";
}

}  // namespace

std::vector<std::string> stage_limits(const Problem& problem, const Candidate& candidate) {
  const simulate::Forecast& forecast = candidate.forecast;
  const double step_us = forecast.simulation.step_us;
  const auto busy = [&](int stage) {
    return step_us > 0 ? forecast.simulation.busy_us[problem.rank(stage, 0)] / step_us : 0;
  };
  int busiest = 0;
  for (int s = 1; s < problem.num_stages; ++s) busiest = busy(s) > busy(busiest) ? s : busiest;
  std::vector<std::string> limits;
  for (int s = 0; s < problem.num_stages; ++s) {
    const double full = static_cast<double>(forecast.memory[problem.rank(s, 0)].total()) /
                        static_cast<double>(problem.memory_limit(s));
    std::string text = "busy " + whole_percent(busy(s)) + " of the step";
    if (s == busiest) {
      text = "its work: " + text;
    } else if (busy(s) >= kNearlyAll * busy(busiest)) {
      text = "the pipeline's warm-up: " + text;
    } else {
      text = "stage " + std::to_string(busiest) + ", for which it waits: " + text;
    }
    if (full >= kNearlyFull) text = "memory, " + whole_percent(full) + " in use; " + text;
    limits.push_back(text);
  }
  return limits;
}

std::string does_not_fit(const Problem& problem, const Candidate& candidate) {
  int worst = 0;
  for (int s = 1; s < problem.num_stages; ++s) {
    if (excess_bytes(problem, candidate, s) > excess_bytes(problem, candidate, worst)) worst = s;
  }
  const simulate::RankMemory& memory = candidate.forecast.memory[problem.rank(worst, 0)];
  const auto kinds = largest_kinds(memory);
  std::string parts;
  for (std::size_t k = 0; k < std::min<std::size_t>(3, kinds.size()); ++k) {
    parts += (k == 0 ? "" : ", ") + kinds[k].second + " " + graph::bytes_text(kinds[k].first);
  }
  return "no plan with " + std::to_string(problem.num_stages) +
         (problem.num_stages == 1 ? " stage" : " stages") + " fits: the best one exceeds the " +
         graph::bytes_text(problem.memory_limit(worst)) + " of stage " + std::to_string(worst) +
         " by " + graph::with_commas(excess_bytes(problem, candidate, worst)) +
         " bytes; most of it are " + parts + "; " +
         advice(problem, candidate, kinds.empty() ? "" : kinds.front().second);
}

}  // namespace trireme::partition
