#pragma once

#include <functional>
#include <string>

#include "trireme/engine/reference/run_record.h"
#include "trireme/engine/train/rank_session.h"
#include "trireme/engine/train/verify_plan.h"

namespace trireme::train {

/// Refuses replicas of a model that writes a buffer in forward: what they make of it (--buffer) is not
/// what one process does.
void check_comparable(const graph::Graph& recorded, const layout::Plan& plan);

/// What `run` leaves on rank 0, which alone calls it; all ranks get the run, rank 0 the comparisons. Every rank calls it; the
/// others wait, never longer than from one call of `after_step` to the next.
ReferenceRun run_on_first(
    const collectives::World& world,
    const std::function<ReferenceRun(const std::function<void()>& after_step)>& run);

/// As verify_in_one_process, by rank 0 alone; its memory is free again when this returns. All ranks
/// get the run, rank 0 the comparisons. Every rank calls it; the others wait, never longer than a
/// step takes.
ReferenceRun verify_on_first(const collectives::World& world, const MakeWorkload& make_workload,
                             const layout::Plan& plan, const ComparedSteps& options);

/// Trains the workload by the ranks of `plan` and compares this rank's part with the run of the
/// serial executor: losses, gradients of what it owns, weights that it holds and buffers of its
/// stage, all of it bit by bit.
///
/// reference   of `run_serial` under the same options and batch layout.
/// Errors      those of RankSession and check_comparable. Every rank of the world calls it.
Comparison verify_rank(const collectives::World& world, const MakeWorkload& make_workload,
                       const layout::Plan& plan, const ComparedSteps& options,
                       const reference::RunRecord& reference);

/// What of the reference no rank of the world has compared: a gradient, weight or buffer that is
/// held nowhere; empty if there is none. Every rank calls it.
///
/// mine   what this rank's store and stage hold of the reference.
std::string first_missing(const collectives::World& world, const reference::RunRecord& mine,
                          const reference::RunRecord& reference);

/// The first difference of the lowest rank that has one, on every rank; empty if there is none.
std::string first_difference(const collectives::World& world, const Comparison& comparison);

}  // namespace trireme::train
