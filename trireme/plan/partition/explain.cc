#include "trireme/plan/partition/explain.h"

#include <algorithm>
#include <cstdio>
#include <functional>

#include "trireme/plan/graph/text_table.h"
#include "trireme/plan/layout/layout_show.h"
#include "trireme/plan/partition/largest_values.h"

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

/// What the fullest rank is expected to hold; nothing where that is not known.
std::string expected_text(const layout::Plan& plan) {
  if (!plan.prediction || plan.prediction->expected_peak_bytes.empty()) return "";
  const auto& expected = plan.prediction->expected_peak_bytes;
  return ", " + bytes_text(*std::max_element(expected.begin(), expected.end())) + " expected";
}

std::string summary(const layout::Plan& plan, const simulate::Forecast& forecast) {
  const double step_us = forecast.simulation.step_us;
  const layout::Role& role = layout::train_role(plan);
  std::string ranks;
  for (int position = 0; !role.is_even() && position < role.mesh.pipeline; ++position) {
    ranks += (position == 0 ? ", on " : " + ") + std::to_string(role.ranks_at(position).size());
  }
  if (!ranks.empty()) ranks += " ranks";
  return "step " + milliseconds(step_us) + " ms, " + layout::schedule_text(plan) + ", " +
         std::to_string(plan.stages.size()) + " stages x " + std::to_string(role.mesh.data) +
         " replicas" + ranks + "\n  lower bounds: " + milliseconds(forecast.plan_bound_us) +
         " ms with these stages (step " + gap(step_us, forecast.plan_bound_us) + " above), " +
         milliseconds(forecast.any_bound_us) + " ms with any (" +
         gap(step_us, forecast.any_bound_us) + ")\n  peak " + bytes_text(forecast.peak_bytes()) +
         " at most on the fullest rank" + expected_text(plan) + "\n";
}

/// The stages of a kind behind what is said of them, with their regions; nothing where there are none.
std::string stages_text(const std::string& what, const layout::Plan& plan,
                        bool layout::Stage::* is_of_kind) {
  std::string stages;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const layout::Stage& stage = plan.stages[s];
    if (!(stage.*is_of_kind)) continue;
    stages += " " + std::to_string(s);
    if (is_of_kind != &layout::Stage::recompute || stage.regions.empty()) continue;
    stages += " (" + std::to_string(stage.regions.size() + 1) + " regions)";
  }
  return stages.empty() ? "" : what + " on stages" + stages + "\n";
}

std::string choices_text(const layout::Plan& plan) {
  return (plan.node_order.empty()
              ? ""
              : "nodes run in another order than they were recorded in, with the same bits\n") +
         stages_text("B with another F, to keep no activations,", plan, &layout::Stage::recompute) +
         stages_text("activations in files between F and B", plan, &layout::Stage::offload) +
         (plan.sharded_parameters ? "parameters in shards on replicas, whole around their stages\n"
                                  : "");
}

std::string reading_text(const simulate::Forecast& forecast) {
  std::string stages;
  double read_us = 0;
  for (std::size_t s = 0; s < forecast.stages.size(); ++s) {
    if (forecast.stages[s].read_us <= 0) continue;
    read_us = forecast.stages[s].read_us;
    stages += " " + std::to_string(s);
  }
  if (stages.empty()) return "";
  return "reading its samples takes " + milliseconds(read_us) + " ms beside F on stages" + stages +
         "\n";
}

std::string times_text(const graph::Graph& planned, const layout::Plan& plan,
                       const simulate::Forecast& forecast) {
  Table table(
      {">stage", ">nodes", "first", ">copies", ">F ms", ">B ms", ">receives", ">sends", ">busy"});
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const layout::Stage& stage = plan.stages[s];
    const simulate::StageCost& cost = forecast.stages[s];
    const int rank = layout::rank_of(plan, static_cast<int>(s), 0);
    const double step_us = forecast.simulation.step_us;
    table.add({std::to_string(s), std::to_string(stage.end - stage.begin),
               graph::shortened(planned.nodes[stage.begin].name, kNameColumns),
               std::to_string(stage.copies.size()), milliseconds(cost.forward_us),
               milliseconds(cost.backward_us()), bytes_text(cost.received_bytes),
               bytes_text(cost.sent_bytes),
               percent(step_us > 0 ? forecast.simulation.busy_us[rank] / step_us : 0)});
  }
  return "\nstages, for one microbatch\n" + table.text() + reading_text(forecast) +
         choices_text(plan);
}

std::string memory_text(const layout::Plan& plan, const simulate::Forecast& forecast) {
  Table table({">stage", ">parameters", ">gradients", ">optimizer", ">activations", ">transient",
               ">messages", ">batch", ">fixed", ">total"});
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const int rank = layout::rank_of(plan, static_cast<int>(s), 0);
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

}  // namespace

std::vector<std::string> stage_limits(const Problem& problem, const Candidate& candidate) {
  const simulate::Forecast& forecast = candidate.forecast;
  const double step_us = forecast.simulation.step_us;
  const auto busy = [&](int stage) {
    return step_us > 0 ? forecast.simulation.busy_us[problem.rank(stage, 0)] / step_us : 0;
  };
  int busiest = 0;
  for (int s = 1; s < problem.num_stages; ++s) busiest = busy(s) > busy(busiest) ? s : busiest;
  const int at_busiest = problem.position(busiest);
  std::vector<std::string> limits;
  for (int s = 0; s < problem.num_stages; ++s) {
    const double full = static_cast<double>(forecast.memory[problem.rank(s, 0)].total()) /
                        static_cast<double>(problem.memory_limit(s));
    std::string text = "busy " + whole_percent(busy(s)) + " of the step";
    if (problem.position(s) == at_busiest) {
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

namespace {

/// What a stage's fullest rank holds and may hold, and what most of it is.
std::string miss_text(const Problem& problem, const Candidate& candidate, int stage,
                      const graph::Graph& planned) {
  const simulate::RankMemory& memory = candidate.forecast.memory[problem.rank(stage, 0)];
  const auto kinds = largest_kinds(memory);
  std::string parts;
  for (std::size_t k = 0; k < std::min<std::size_t>(3, kinds.size()); ++k) {
    parts += (k == 0 ? "" : ", ") + kinds[k].second + " " + graph::bytes_text(kinds[k].first);
  }
  return "\n  stage " + std::to_string(stage) + ": " +
         graph::with_commas(excess_bytes(problem, candidate, stage)) + " bytes more than its " +
         graph::bytes_text(problem.memory_limit(stage)) + "; most of it are " + parts +
         "; its largest values: " + largest_values(planned, candidate.plan, stage);
}

}  // namespace

std::string does_not_fit(const Problem& problem, const Candidate& candidate) {
  constexpr std::size_t kMost = 8;
  std::vector<int> missing;
  for (int s = 0; s < problem.num_stages; ++s) {
    if (excess_bytes(problem, candidate, s) > 0) missing.push_back(s);
  }
  std::ranges::stable_sort(missing, std::greater{},
                           [&](int stage) { return excess_bytes(problem, candidate, stage); });
  const graph::Graph planned = layout::planned_graph(problem.recorded, candidate.plan);
  std::string text = "no plan with " + std::to_string(problem.num_stages) +
                     (problem.num_stages == 1 ? " stage" : " stages") + " in " +
                     std::to_string(problem.options.replicas) +
                     (problem.options.replicas == 1 ? " replica" : " replicas") + " fits; with " +
                     graph::with_commas(excess_bytes(problem, candidate, missing[0])) +
                     " bytes more on each rank the best one would. Its ranks hold too much in " +
                     std::to_string(missing.size()) + " of them:";
  for (std::size_t i = 0; i < std::min(kMost, missing.size()); ++i) {
    text += miss_text(problem, candidate, missing[i], planned);
  }
  if (missing.size() <= kMost) return text;
  return text + "\n  and " + std::to_string(missing.size() - kMost) + " more";
}

}  // namespace trireme::partition
