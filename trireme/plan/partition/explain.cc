#include "trireme/plan/partition/explain.h"

#include <algorithm>
#include <cstdio>

#include "trireme/plan/graph/table.h"
#include "trireme/plan/layout/manual.h"

namespace trireme::partition {
namespace {

using graph::bytes_text;
using graph::Table;

constexpr std::size_t kNameColumns = 28;

std::string milliseconds(double us) {
  char text[400];
  std::snprintf(text, sizeof text, "%.3f", us / 1000);
  return text;
}

std::string percent(double part) {
  char text[400];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * part);
  return text;
}

/// How far `us` is above a bound.
std::string gap(double us, double bound_us) {
  return percent(bound_us > 0 ? us / bound_us - 1 : 0);
}

std::string summary(const layout::Plan& plan, const simulate::Forecast& forecast) {
  const double step_us = forecast.simulation.step_us;
  const layout::Mesh& mesh = layout::train_role(plan).mesh;
  return "step " + milliseconds(step_us) + " ms, schedule " + plan.schedule.name + ", " +
         std::to_string(plan.stages.size()) + " stages x " + std::to_string(mesh.data) +
         " replicas\n  lower bounds: " + milliseconds(forecast.plan_bound_us) +
         " ms with these stages (step " + gap(step_us, forecast.plan_bound_us) + " above), " +
         milliseconds(forecast.any_bound_us) + " ms with any (" +
         gap(step_us, forecast.any_bound_us) + ")\n  peak " + bytes_text(forecast.peak_bytes()) +
         " on the fullest rank\n";
}

std::string times_text(const graph::Graph& planned, const layout::Plan& plan,
                       const simulate::Forecast& forecast) {
  const layout::Role& role = layout::train_role(plan);
  Table table(
      {">stage", ">nodes", "first", ">copies", ">F ms", ">B ms", ">receives", ">sends", ">busy"});
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const layout::Stage& stage = plan.stages[s];
    const simulate::StageCost& cost = forecast.stages[s];
    const int rank = role.placement[s * static_cast<std::size_t>(role.mesh.data)];
    const double step_us = forecast.simulation.step_us;
    table.add({std::to_string(s), std::to_string(stage.end - stage.begin),
               graph::shortened(planned.nodes[stage.begin].name, kNameColumns),
               std::to_string(stage.copies.size()), milliseconds(cost.forward_us),
               milliseconds(cost.backward_us()), bytes_text(cost.received_bytes),
               bytes_text(cost.sent_bytes),
               percent(step_us > 0 ? forecast.simulation.busy_us[rank] / step_us : 0)});
  }
  return "\nstages, for one microbatch\n" + table.text();
}

std::string memory_text(const layout::Plan& plan, const simulate::Forecast& forecast) {
  const layout::Role& role = layout::train_role(plan);
  Table table({">stage", ">parameters", ">gradients", ">optimizer", ">activations", ">transient",
               ">messages", ">batch", ">fixed", ">total"});
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const int rank = role.placement[s * static_cast<std::size_t>(role.mesh.data)];
    const simulate::RankMemory& memory = forecast.memory[rank];
    table.add({std::to_string(s), bytes_text(memory.parameters), bytes_text(memory.gradients),
               bytes_text(memory.optimizer), bytes_text(memory.activations),
               bytes_text(memory.transient), bytes_text(memory.messages), bytes_text(memory.batch),
               bytes_text(memory.fixed), bytes_text(memory.total())});
  }
  return "\npeak memory of a rank of the stage\n" + table.text();
}

std::string limits_text(const layout::Plan& plan) {
  if (!plan.prediction) return "";
  std::string text = "\nwhat limits a stage\n";
  for (std::size_t s = 0; s < plan.prediction->limits.size(); ++s) {
    text += "  stage " + std::to_string(s) + ": " + plan.prediction->limits[s] + "\n";
  }
  return text;
}

}  // namespace

std::string explain(const graph::Graph& planned, const layout::Plan& plan,
                    const simulate::Forecast& forecast) {
  return summary(plan, forecast) + times_text(planned, plan, forecast) +
         memory_text(plan, forecast) + limits_text(plan);
}

}  // namespace trireme::partition
