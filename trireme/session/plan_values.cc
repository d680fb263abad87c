#include <fmt/format.h>

#include <map>
#include <optional>
#include <span>
#include <utility>

#include "trireme/error.h"
#include "trireme/plan.h"
#include "trireme/plan/graph/cuts.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/graph/graph_show.h"
#include "trireme/plan/layout/layout_show.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/layout/plan_json.h"
#include "trireme/plan/partition/explain.h"
#include "trireme/plan/profile/profile_json.h"
#include "trireme/plan/profile/profile_show.h"
#include "trireme/plan/schedule/execution.h"
#include "trireme/plan/schedule/schedules.h"
#include "trireme/plan/schedule/timeline.h"
#include "trireme/plan/schedule/timeline_json.h"
#include "trireme/plan/simulate/predicted_timeline.h"
#include "trireme/plan/topology/topology.h"
#include "trireme/plan/topology/topology_json.h"
#include "trireme/session/planning.h"

namespace trireme {
namespace {

constexpr int kDrawnColumns = 100;

template <typename T>
std::shared_ptr<const T> shared(T value) {
  return std::make_shared<const T>(std::move(value));
}

/// The order of the actions of a replica's ranks, in units of time.
std::string order_text(const layout::Plan& plan) {
  return "order of microbatches (" + plan.schedule.name + ")\n" +
         schedule::grid(schedule::schedule_of(plan), {.max_columns = kDrawnColumns});
}

}  // namespace

Graph::Graph(std::shared_ptr<const graph::Graph> value) : value_(std::move(value)) {}
Graph Graph::load(const std::filesystem::path& path) { return Graph(shared(graph::load(path))); }
std::string Graph::save(const std::filesystem::path& path) const {
  return graph::save(*value_, path);
}
std::string Graph::show() const { return graph::show(*value_); }
std::string Graph::sha256() const { return graph::graph_sha256(*value_); }
std::int64_t Graph::microbatch() const { return value_->microbatch; }

std::vector<std::string> Graph::node_names() const {
  std::vector<std::string> names;
  for (const graph::Node& node : value_->nodes) names.push_back(node.name);
  return names;
}

std::vector<int> Graph::allowed_cuts() const {
  const std::vector<bool> allowed = graph::allowed_cuts(*value_);
  std::vector<int> positions;
  for (std::size_t i = 0; i < allowed.size(); ++i) {
    if (allowed[i]) positions.push_back(static_cast<int>(i));
  }
  return positions;
}

std::vector<int> Graph::first_uses() const {
  std::map<graph::ValueId, int> first;
  for (std::size_t i = 0; i < value_->nodes.size(); ++i) {
    for (const graph::ValueId id : graph::input_values(value_->nodes[i])) {
      first.emplace(id, static_cast<int>(i));
    }
  }
  std::vector<int> uses;
  for (const graph::Parameter& parameter : value_->parameters) {
    const auto found = first.find(parameter.value);
    uses.push_back(found == first.end() ? -1 : found->second);
  }
  return uses;
}

std::vector<std::string> Graph::parameter_names() const {
  std::vector<std::string> names;
  for (const graph::Parameter& parameter : value_->parameters) names.push_back(parameter.name);
  return names;
}

std::vector<std::string> Graph::buffer_names() const {
  std::vector<std::string> names;
  for (const graph::Buffer& buffer : value_->buffers) names.push_back(buffer.name);
  return names;
}

std::vector<std::string> Graph::tied_parameters() const {
  std::vector<std::string> names;
  for (const graph::UseSite& site : graph::use_sites(*value_)) {
    if (site.site == 1) names.push_back(value_->parameters[site.parameter].name);
  }
  return names;
}

std::vector<std::string> Graph::unused_parameters() const {
  return graph::unused_parameters(*value_);
}

std::vector<std::string> Graph::random_nodes() const {
  std::vector<std::string> names;
  for (const graph::Node& node : value_->nodes) {
    if (node.flags.random) names.push_back(node.name);
  }
  return names;
}

Profile::Profile(std::shared_ptr<const profile::Profile> value) : value_(std::move(value)) {}
Profile Profile::load(const std::filesystem::path& path) {
  return Profile(shared(profile::load(path)));
}
Profile Profile::load(const std::filesystem::path& path, const Graph& graph) {
  return Profile(shared(profile::load(path, graph.value())));
}
std::string Profile::save(const std::filesystem::path& path) const {
  return profile::save(*value_, path);
}
std::string Profile::show(const Graph& graph) const {
  profile::check(*value_, graph.value());
  return profile::show(*value_, graph.value());
}
std::string Profile::graph_sha256() const { return value_->graph_sha256; }
std::int64_t Profile::microbatch() const { return value_->microbatch; }
int Profile::num_distinct_nodes() const { return static_cast<int>(value_->costs.size()); }

double Profile::forward_ms() const {
  double us = 0;
  for (const int cost : value_->cost_of) us += value_->costs.at(cost).forward_us;
  return us / 1e3;
}

double Profile::backward_ms() const {
  double us = 0;
  for (const int cost : value_->cost_of) {
    us += value_->costs.at(cost).input_us + value_->costs.at(cost).weight_us;
  }
  return us / 1e3;
}

Topology::Topology(std::shared_ptr<const topology::Topology> value) : value_(std::move(value)) {}
Topology Topology::load(const std::filesystem::path& path) {
  return Topology(shared(topology::load(path)));
}
std::string Topology::save(const std::filesystem::path& path) const {
  return topology::save(*value_, path);
}
std::string Topology::show() const { return topology::show(*value_); }
int Topology::num_hosts() const { return static_cast<int>(value_->hosts.size()); }
int Topology::num_ranks() const { return static_cast<int>(value_->ranks.size()); }
std::int64_t Topology::memory_bytes(int rank) const { return value_->ranks.at(rank).memory_bytes; }

Plan::Plan(std::shared_ptr<const layout::Plan> value, std::string origin)
    : value_(std::move(value)), origin_(std::move(origin)) {}
Plan Plan::load(const std::filesystem::path& path) {
  return Plan(shared(layout::load(path)), "'" + path.string() + "'");
}
Plan Plan::load(const std::filesystem::path& path, const Graph& graph) {
  return Plan(shared(layout::load(path, graph.value())), "'" + path.string() + "'");
}
std::string Plan::save(const std::filesystem::path& path) const {
  return layout::save(*value_, path);
}
std::string Plan::show(const Graph& graph) const {
  return layout::show(*value_, layout::planned_graph(graph.value(), *value_));
}
std::string Plan::graph_sha256() const { return value_->graph_sha256; }
const BatchLayout& Plan::batch() const { return value_->batch; }
int Plan::num_stages() const { return static_cast<int>(value_->stages.size()); }
int Plan::num_replicas() const { return layout::train_role(*value_).mesh.data; }
int Plan::num_ranks() const { return layout::train_role(*value_).num_ranks(); }
const std::string& Plan::schedule() const { return value_->schedule.name; }
std::optional<Prediction> Plan::prediction() const { return value_->prediction; }

std::vector<int> Plan::stage_begins() const {
  std::vector<int> begins;
  for (const layout::Stage& stage : value_->stages) begins.push_back(stage.begin);
  return begins;
}

Plan make_plan(const Graph& graph, const PlanOptions& options) {
  return Plan(shared(session::plan_by_hand(graph.value(), options)));
}

Decision make_plan(const Graph& graph, const Profile& profile, const Topology& topology,
                   const PlanOptions& options, const TrainingOptions& training) {
  profile::check(profile.value(), graph.value());
  return session::decide(graph.value(), {profile, topology}, options, training);
}

SimulatedStep simulate_step(const Plan& plan, const Graph& graph, const Profile& profile,
                            const Topology& topology, const TrainingOptions& training) {
  const graph::Graph planned = layout::planned_graph(graph.value(), plan.value());
  const simulate::Forecast forecast =
      session::forecast(planned, plan.value(), profile.value(), topology.value(), training);
  const schedule::Timeline timeline =
      simulate::predicted_timeline(forecast.program, forecast.simulation);
  SimulatedStep step{.step_ms = forecast.simulation.step_us / 1e3,
                     .lower_bound_ms = forecast.plan_bound_us / 1e3,
                     .peak_bytes = forecast.peak_bytes()};
  for (const double busy : forecast.simulation.busy_us) step.busy_ms.push_back(busy / 1e3);
  step.text = partition::explain(planned, plan.value(), forecast) + "\n" +
              order_text(plan.value()) + "\n" + schedule::draw(timeline, kDrawnColumns) + "\n" +
              schedule::show_usage(timeline);
  step.timeline =
      to_document_text(schedule::kTimelineDocument, schedule::to_json(std::span(&timeline, 1)));
  return step;
}

Front make_front(const Graph& graph, const Profile& profile, const Topology& topology,
                 const PlanOptions& options, const TrainingOptions& training) {
  profile::check(profile.value(), graph.value());
  return session::front(graph.value(), {profile, topology}, options, training);
}

namespace {

/// The step that ran, of a file that a run wrote.
schedule::Timeline measured_step(const std::filesystem::path& file) {
  for (schedule::Timeline& timeline : schedule::load_timelines(file)) {
    if (timeline.name == "measured") return std::move(timeline);
  }
  throw Error(ErrorKind::kInvalidArgument,
              file.string() + ": has no measured step; give the timeline that a run wrote");
}

ChangedStep public_form(const partition::WhatIf& one) {
  return {one.change, one.step_us / 1000, one.us_per_sample, one.peak_bytes};
}

}  // namespace

ChangedSteps explain_step(const Plan& plan, const Graph& graph, const Profile& profile,
                          const Topology& topology, const TrainingOptions& training,
                          const std::filesystem::path& timeline) {
  std::optional<schedule::Timeline> measured;
  if (!timeline.empty()) measured = measured_step(timeline);
  const partition::WhatIfs all = session::what_if(graph.value(), plan.value(), {profile, topology},
                                                  training, measured ? &*measured : nullptr);
  ChangedSteps result{.now = public_form(all.now), .text = partition::show(all)};
  for (const partition::WhatIf& one : all.changes) result.changes.push_back(public_form(one));
  return result;
}

}  // namespace trireme
