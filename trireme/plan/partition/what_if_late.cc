#include "trireme/plan/partition/what_if_late.h"

#include <string>
#include <utility>

#include "trireme/plan/layout/parameter_map.h"
#include "trireme/plan/simulate/forecast.h"
#include "trireme/plan/simulate/stragglers.h"

namespace trireme::partition {
namespace {

std::size_t num_operations(const simulate::Forecast& forecast) {
  std::size_t num = 0;
  for (const std::vector<schedule::Operation>& rank : forecast.program.ranks) num += rank.size();
  return num;
}

}  // namespace

std::vector<WhatIf> what_if_late(const PlannedStep& step) {
  constexpr std::size_t kMostOperations = 20'000;
  const graph::Graph planned = layout::planned_graph(step.recorded, step.plan);
  const layout::ParameterMap map = layout::make_parameter_map(planned, step.plan);
  const simulate::PriceInputs inputs{planned, step.plan, map, step.profile, step.topology};
  const simulate::Forecast forecast = simulate::forecast(inputs, step.options);
  if (num_operations(forecast) > kMostOperations) return {};
  const simulate::StepSpread times =
      simulate::play_stragglers(forecast.program,
                                simulate::prices(forecast.program, forecast.stages, inputs,
                                                 step.options.memory.gradient_dtype),
                                step.topology, {.spread = 0.1, .num_steps = 100});
  std::vector<WhatIf> changes;
  const auto add = [&](std::string change, double step_us) {
    changes.push_back({std::move(change), step_us,
                       step_us / static_cast<double>(step.plan.batch.global_batch),
                       forecast.peak_bytes()});
  };
  add("times 10 % apart at random, mean step", times.mean_us());
  add("times 10 % apart at random, 1 step in 20", times.quantile_us(0.95));
  return changes;
}

}  // namespace trireme::partition
