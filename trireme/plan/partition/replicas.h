#pragma once

#include "trireme/plan/partition/partition.h"

namespace trireme::partition {

/// The best plan of `partition` over the numbers of replicas for which results are the same bits
/// (docs/concepts/equality.md): 1, and those with lanes / replicas a power of two, that divide
/// the ranks.
///
/// options    as for `partition`; `replicas` 0 asks for this search, another number is taken as it
///            is.
/// topology   all of its ranks are used.
/// Errors     those of `partition` where no number gives a plan: of the last that failed for lack of
///            memory, else of the first.
layout::Plan partition_over_replicas(const graph::Graph& recorded, const profile::Profile& profile,
                                     const topology::Topology& topology,
                                     const PartitionOptions& options);

}  // namespace trireme::partition
