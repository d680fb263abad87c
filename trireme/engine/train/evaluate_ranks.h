#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "trireme/engine/train/batch_reader.h"
#include "trireme/engine/train/rank_session.h"

namespace trireme::train {

/// Refuses what `evaluate_ranks` would refuse: called before a training, since it is evaluated
/// after.
///
/// Errors   kInvalidArgument where the recording cannot be cut where the plan is
///          (layout::matching_cuts).
///          Those of check_evaluation_data.
void check_evaluation(const RankSession& session, const Workload& workload,
                      const record::Recording& recording);

/// What ranks found.
struct RankEvaluation {
  StepLosses losses;  ///< The same on every rank; metrics behind them, but where it was stopped.
  std::vector<std::vector<double>> microbatch_sums;  ///< Of each loss, likewise.
  RanProgram last_part;     ///< The last of its programs, named `evaluation`.
  bool is_stopped = false;  ///< Before its end: of some of the samples only.
};

struct EvaluationOptions {
  /// Microbatches of a replica in one program, at most: programs stay small, and the pipeline runs empty seldom.
  std::int64_t most_at_once = 256;
  /// Asked between two programs, which then take a few seconds at most, whether to stop; every rank calls it and has the
  /// same answer. May be empty.
  std::function<bool()> stops;
};

/// Losses over every sample of the workload's evaluation data, once each, by the session's ranks:
/// step programs of forwards (schedule::make_evaluation_program), one after the other. The same sums
/// as `evaluate`, on every rank. Every rank calls it.
///
/// recording   of the model in eval mode, made before the session.
/// Errors   kInvalidArgument where there is no evaluation data, and those of check_evaluation.
RankEvaluation evaluate_ranks(const collectives::World& world, const Workload& workload,
                              const RankSession& session, const record::Recording& recording,
                              const EvaluationOptions& options = {});

}  // namespace trireme::train
