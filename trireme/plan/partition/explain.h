#pragma once

#include <string>
#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/partition/candidate.h"
#include "trireme/plan/simulate/forecast.h"

namespace trireme::partition {

/// A plan's forecast for people: step time against the bounds, peak, and per stage its nodes, times
/// for one microbatch, traffic, memory by kind and, where the plan has a prediction, what limits
/// it.
///
/// planned   the graph with the plan's copies.
std::string explain(const graph::Graph& planned, const layout::Plan& plan,
                    const simulate::Forecast& forecast);

/// What limits each stage, one line for people: memory, its own work, or another stage.
std::vector<std::string> stage_limits(const Problem& problem, const Candidate& candidate);

/// Why the candidate does not fit: by stage that holds too much, the worst first, bytes over its limit, the largest kinds
/// and values.
std::string does_not_fit(const Problem& problem, const Candidate& candidate);

}  // namespace trireme::partition
