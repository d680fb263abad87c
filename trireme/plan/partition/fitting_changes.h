#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trireme/plan/layout/plan.h"
#include "trireme/plan/partition/partition.h"
#include "trireme/plan/profile/profile.h"
#include "trireme/plan/topology/topology.h"

namespace trireme::partition {

/// Something asked otherwise, so that a plan fits.
struct FittingChange {
  std::string change;  ///< For people: `--recompute auto`.
  double step_ms = 0;
};

/// The plan for these ranks and options; nothing where none fits.
using FindPlan = std::function<std::optional<layout::Plan>(const topology::Topology& topology,
                                                           const PartitionOptions& options)>;

/// Of single changes of the options, those with which a plan fits, the fastest first: recomputation, files, another schedule,
/// fewer active microbatches, more stages, two stages a rank, shards of the state, replicas that share it. Where none does,
/// more ranks: one, and twice as many.
///
/// Bits are kept by all of them.
/// Cost   a search for each, of an eighth of the effort.
std::vector<FittingChange> fitting_changes(const profile::Profile& profile,
                                           const topology::Topology& topology,
                                           const PartitionOptions& options,
                                           const FindPlan& find_plan);

/// For people: a line for each, or that there are none.
std::string show(const std::vector<FittingChange>& changes);

}  // namespace trireme::partition
