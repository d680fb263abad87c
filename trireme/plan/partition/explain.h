#pragma once

#include <string>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/simulate/forecast.h"

namespace trireme::partition {

/// A plan's forecast for people: step time against the bounds, peak, and per stage its nodes, times
/// for one microbatch, traffic, memory by kind and, where the plan has a prediction, what limits
/// it.
///
/// planned   the graph with the plan's copies.
std::string explain(const graph::Graph& planned, const layout::Plan& plan,
                    const simulate::Forecast& forecast);

}  // namespace trireme::partition
