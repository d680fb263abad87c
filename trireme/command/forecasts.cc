#include "trireme/command/forecasts.h"

namespace trireme::command {

simulate::ForecastOptions forecast_options(const train::OptimizerOptions& optimizer) {
  return {.memory = {.optimizer_bytes_per_element = train::optimizer_bytes_per_element(optimizer)},
          .program = {.clips_norm = optimizer.clip_norm > 0}};
}

simulate::Forecast forecast(const graph::Graph& planned, const layout::Plan& plan,
                            const profile::Profile& profile, const topology::Topology& topology,
                            const train::OptimizerOptions& optimizer) {
  const parameters::ParameterMap map = parameters::make_parameter_map(planned, plan);
  return simulate::forecast({planned, plan, map, profile, topology}, forecast_options(optimizer));
}

}  // namespace trireme::command
