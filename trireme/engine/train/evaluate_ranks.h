#pragma once

#include "trireme/engine/train/rank_session.h"
#include "trireme/engine/train/workload.h"

namespace trireme::train {

/// Refuses what `evaluate_ranks` would refuse: called before a training, since it is evaluated
/// after.
///
/// Errors   kInvalidArgument where the recording cannot be cut where the plan is
///          (layout::matching_cuts).
///          Those of check_remainder.
void check_evaluation(const RankSession& session, const Workload& workload,
                      const record::Recording& recording);

/// Losses over every sample of the workload's evaluation data, once each, by the session's ranks:
/// microbatch m by replica m mod R, through the stages one after the other. The same sums as
/// `evaluate`, on every rank. Every rank calls it.
///
/// recording   of the model in eval mode, made before the session.
/// Errors      kInvalidArgument where there is no evaluation data, and those of check_evaluation.
StepLosses evaluate_ranks(const collectives::World& world, const Workload& workload,
                          const RankSession& session, const record::Recording& recording);

}  // namespace trireme::train
