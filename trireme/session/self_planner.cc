#include "trireme/session/self_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <system_error>
#include <utility>

#include "trireme/engine/measure/detect_topology.h"
#include "trireme/engine/train/replica_buffers.h"
#include "trireme/error.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/plan_json.h"
#include "trireme/plan/profile/profile_json.h"
#include "trireme/plan/topology/topology_json.h"
#include "trireme/session/run_folder.h"

namespace trireme::session {
namespace {

bool fits(const MeasuredCosts& measurement, const graph::Graph& graph,
          const SessionOptions& options, int num_ranks) {
  const std::vector<topology::RankPlace>& places = measurement.topology.value().ranks;
  const profile::Profile& profile = measurement.profile.value();
  return profile.graph_sha256 == graph::graph_sha256(graph) &&
         profile.microbatch == options.planning.batch.microbatch &&
         profile.threads == options.planning.threads &&
         (profile.step.file || options.planning.offload == Offload::kNone) &&
         static_cast<int>(places.size()) == num_ranks &&
         profile.num_busy_ranks ==
             std::ranges::count(places, places[0].host, &topology::RankPlace::host);
}

/// Whether each rank lies on the host on which it was measured.
bool same_places(const topology::Topology& a, const topology::Topology& b) {
  const auto same_host = [](const topology::Host& x, const topology::Host& y) {
    return x.name == y.name && x.num_cores == y.num_cores;
  };
  const auto same_rank = [](const topology::RankPlace& x, const topology::RankPlace& y) {
    return x.host == y.host;
  };
  return std::equal(a.hosts.begin(), a.hosts.end(), b.hosts.begin(), b.hosts.end(), same_host) &&
         std::equal(a.ranks.begin(), a.ranks.end(), b.ranks.begin(), b.ranks.end(), same_rank);
}

/// Lanes change bits, so they are the user's to choose: says where more would allow more replicas.
std::string lanes_hint(const layout::Plan& plan, int num_ranks) {
  const std::int64_t microbatches = plan.batch.num_microbatches();
  const auto most = static_cast<std::int64_t>(std::bit_floor(static_cast<unsigned>(num_ranks)));
  const std::int64_t lanes = std::min(most, microbatches & -microbatches);
  if (num_ranks == 1 || plan.batch.lanes >= lanes) return "";
  return fmt::format(
      "with --lanes {} up to {} replicas could share the batch, instead of {}; it changes the last "
      "bits of weights\n\n",
      lanes, lanes, plan.batch.lanes);
}

/// Why the plan has one replica; empty where it may have more.
std::string replicas_hint(const graph::Graph& graph, const ReplicaPolicies& policies) {
  const std::string why = train::why_one_replica(graph, policies);
  return why.empty() ? "" : fmt::format("one replica: {}\n\n", why);
}

}  // namespace

std::string SelfPlanner::file_for(const std::string& what) const {
  return folder_ / RunFolder::name_for(what, world_.size());
}

/// The one that the options name.
MeasuredCosts SelfPlanner::named_measurement(const graph::Graph& graph) const {
  MeasuredCosts named{Profile::load(options_.profile), Topology::load(options_.topology)};
  if (fits(named, graph, options_, world_.size())) return named;
  throw Error(
      ErrorKind::kInvalidArgument,
      fmt::format("{} is not a profile of this model with microbatches of {} on {} ranks of {} "
                  "threads; leave --profile out to measure",
                  options_.profile, options_.planning.batch.microbatch, world_.size(),
                  options_.planning.threads));
}

/// One of this folder, if it is of this model and these hosts. Memory is that of now.
std::optional<MeasuredCosts> SelfPlanner::kept_measurement(const graph::Graph& graph,
                                                           topology::Topology now) const {
  std::error_code ignored;
  if (folder_.empty() || !std::filesystem::exists(profile_file(), ignored)) return std::nullopt;
  std::optional<MeasuredCosts> kept;
  try {
    kept.emplace(Profile::load(profile_file()), Topology::load(topology_file()));
  } catch (const Error& error) {
    world_.watch.logger.warning("measured anew, over a file that is damaged: " + error.message());
    return std::nullopt;
  }
  if (!fits(*kept, graph, options_, world_.size()) || !same_places(kept->topology.value(), now)) {
    world_.watch.logger.info("measured anew: " + profile_file() + " is of other hosts or a model");
    return std::nullopt;
  }
  kept->topology = Topology(std::make_shared<topology::Topology>(std::move(now)));
  return kept;
}

bool SelfPlanner::has_measurement(const graph::Graph& graph) {
  const auto group = collectives::make_world_group(world_, "topology");
  topology::Topology now =
      measure::detect_topology(measure::BusyRanks(*group, world_.watch),
                               {.device_memory_bytes = options_.planning.device_memory_bytes,
                                .threads = options_.planning.threads});
  if (world_.rank() == 0) {
    measurement_ = options_.profile.empty() ? kept_measurement(graph, std::move(now))
                                            : named_measurement(graph);
  }
  return !collectives::from_first(world_, measurement_ ? "yes" : "", "measurement").empty();
}

void SelfPlanner::keep(MeasuredCosts measurement) {
  if (world_.rank() != 0) return;
  if (!folder_.empty()) {
    std::error_code ignored;
    // A kill leaves no profile without its topology.
    std::filesystem::remove(profile_file(), ignored);
    measurement.topology.save(topology_file());
    measurement.profile.save(profile_file());
  }
  measurement_ = std::move(measurement);
}

layout::Plan SelfPlanner::decide(const graph::Graph& graph, const PlannedCopies& copies) {
  std::string text;
  if (world_.rank() == 0) {
    const Decision decision =
        session::decide(graph, *measurement_, options_.planning, options_.training, copies);
    if (options_.callbacks.on_plan) {
      const std::string hint = replicas_hint(graph, options_.training.buffers);
      const layout::Plan& plan = decision.plan.value();
      options_.callbacks.on_plan(
          decision.plan,
          decision.text + "\n" + (hint.empty() ? lanes_hint(plan, world_.size()) : hint));
    }
    text = to_document_text(layout::kPlanDocument, layout::to_json(decision.plan.value()));
  }
  const std::string origin = "rank 0's plan";
  return layout::plan_from_json(
      parse_document(layout::kPlanDocument, collectives::from_first(world_, text, "plan"), origin));
}

}  // namespace trireme::session
