#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/profile/profile.h"

namespace trireme::partition {

/// Chooses what a stage makes itself: a value that crosses a cut, needs no gradient and is made of
/// the batch and constants alone by nodes that may be copied (layout::check) is made again by the
/// consuming stage, with all nodes before it, where their forwards take less than sending it.
class StageCopies {
 public:
  /// planned, profile   must outlive this.
  StageCopies(const graph::Graph& planned, const profile::Profile& profile);
  ~StageCopies();

  /// A value without gradient that a stage would receive, and over which kind of link.
  struct Arrival {
    graph::ValueId value = -1;
    profile::LinkKind link_kind = profile::LinkKind::kHost;
    auto operator<=>(const Arrival&) const = default;
  };

  /// Positions of the nodes that a stage with these arrivals, ascending, runs again; ascending.
  std::vector<int> choose(std::span<const Arrival> arrivals) const;

 private:
  class ConeFinder;
  const graph::Graph& graph_;
  const profile::Profile& profile_;
  std::vector<profile::NodeTime> times_;
  std::unique_ptr<ConeFinder> finder_;
};

/// Kind of the links from one stage to another.
using StageLinks = std::function<profile::LinkKind(int from, int to)>;

/// Sets `Stage::copies`.
///
/// planned, profile   that `plan` counts in. `plan` has its stages, without copies.
void add_stage_copies(const graph::Graph& planned, const profile::Profile& profile,
                      const StageLinks& link_kind, layout::Plan& plan);

/// Whether graph::copy_to_consumers accepts the nodes.
bool can_copy(const graph::Graph& recorded, const std::vector<graph::NodeId>& nodes);

/// Groups of nodes that may pay as `Plan::copied_nodes`: all that a value with a gradient is made
/// by, where that is cheap, has a parameter in it, and several nodes use the value with an allowed
/// cut between them. The largest values first; a few at most.
///
/// Whether one pays depends on the cuts: whoever plans tries.
std::vector<std::vector<graph::NodeId>> copy_candidates(const graph::Graph& recorded,
                                                        const profile::Profile& profile);

}  // namespace trireme::partition
