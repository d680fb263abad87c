#pragma once

#include <optional>
#include <span>
#include <vector>

#include "trireme/engine/measure/measurement.h"
#include "trireme/engine/measure/range_runs.h"
#include "trireme/plan/profile/profile.h"

namespace trireme::measure {

/// The allowed cut that parts the nodes most evenly; nothing where no cut is allowed.
///
/// node_us   time of each node.
std::optional<int> middle_cut(const graph::Graph& graph, std::span<const double> node_us);

/// Times ranges as the stages that they would be: forward and backward of one microbatch, means
/// over repeats, of which the median over ranks.
///
/// Gradients of parameters are dropped as they come: folding them is no part of the times
/// (profile::StepCosts::fold_ns is its price), nor are copies of what crosses a cut.
///
/// runs     of `subject`.
/// Buffers are left as they were. Cost: memory of a forward of all nodes.
std::vector<profile::RangeTime> measure_ranges(const Subject& subject, RangeRuns& runs,
                                               const RepeatOptions& options);

/// How much longer the ranges take where they are not captured: likewise, in turns. Nothing where
/// none of `runs` is captured.
std::optional<profile::UncapturedTimes> measure_uncaptured(const Subject& subject, RangeRuns& runs,
                                                           std::span<const int> cuts,
                                                           const RepeatOptions& options);

/// Of several measurements of the same ranges, apart in time, the one in the middle by the sum of its
/// times: a step meets the machine as it mostly is. visits   one or more.
std::vector<profile::RangeTime> middle_visit(std::vector<std::vector<profile::RangeTime>> visits);

/// How much longer forward and backward of the whole graph take where several microbatches go
/// forward before the first goes back: medians over repeats and ranks, in turns with one alone.
///
/// As many are held as fill 256 MiB, 2 to 8; nothing where one fills that or keeps nothing.
/// Counts live bytes of the process on the first rank, as measure_memory does.
///
/// options   of the repeats: one is a microbatch alone and those that are held.
/// Buffers are left as they were. Blocks; every rank calls it. Cost: memory of those microbatches.
std::optional<profile::HeldTimes> measure_held(const Subject& subject,
                                               const RepeatOptions& options);

}  // namespace trireme::measure
