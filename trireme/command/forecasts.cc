#include "trireme/command/forecasts.h"

namespace trireme::command {

simulate::ForecastOptions forecast_options(const train::OptimizerOptions& optimizer) {
  return {.memory = {.optimizer_bytes_per_element = train::optimizer_bytes_per_element(optimizer)},
          .program = {.has_norm = true}};
}

simulate::Forecast forecast(const graph::Graph& planned, const layout::Plan& plan,
                            const profile::Profile& profile, const topology::Topology& topology,
                            const train::OptimizerOptions& optimizer) {
  const parameters::ParameterMap map = parameters::make_parameter_map(planned, plan);
  simulate::ForecastOptions options = forecast_options(optimizer);
  options.program.tolerant = true;  // whoever trains says whether it is
  return simulate::forecast({planned, plan, map, profile, topology}, options);
}

}  // namespace trireme::command
