#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "trireme/engine/program/node_program.h"

namespace trireme::train {

/// Batch statistics of a replica: [microbatch], in node order; the same nodes in each.
using Statistics = std::vector<std::vector<program::NormStatistics>>;

bool has_statistics(const Statistics& statistics);

/// Means and variances one after the other, as they lie in memory.
std::vector<std::byte> to_bytes(const Statistics& statistics);

/// The statistics of `num_replicas`, in global microbatch order, from their bytes.
///
/// like   those of one replica: the nodes, shapes and dtypes of all.
Statistics from_bytes(std::span<const std::byte> bytes, const Statistics& like, int num_replicas);

}  // namespace trireme::train
