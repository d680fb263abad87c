#pragma once

#include "trireme/engine/train/training_options.h"
#include "trireme/plan/simulate/forecast.h"

namespace trireme::command {

/// What is predicted about a step of `plan` under the optimizer.
///
/// planned   the graph with the plan's copies. Errors of simulate::forecast.
simulate::Forecast forecast(const graph::Graph& planned, const layout::Plan& plan,
                            const profile::Profile& profile, const topology::Topology& topology,
                            const train::OptimizerOptions& optimizer);

simulate::ForecastOptions forecast_options(const train::OptimizerOptions& optimizer);

}  // namespace trireme::command
