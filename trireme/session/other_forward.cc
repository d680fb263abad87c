#include "trireme/session/other_forward.h"

#include <utility>

#include "trireme/engine/train/construct_workload.h"
#include "trireme/engine/train/evaluate_ranks.h"
#include "trireme/engine/train/whole_model.h"
#include "trireme/error.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/session/training.h"

namespace trireme::session {

OtherForward record_other(const MakeWorkload& make, const train::RankSession& ranks,
                          const SessionOptions& options, const collectives::World& world) {
  const train::WholeModel whole(ranks.recording());
  OtherForward found{.workload = train::construct(make, options.training.seed), .recording = {}};
  if (found.workload.evaluation == nullptr) {
    throw Error(ErrorKind::kInvalidArgument, kNoEvaluation);
  }
  found.recording =
      record_model({found.workload.model, found.workload.evaluation, graph::Mode::kEval,
                    ranks.plan().batch.microbatch, options.batch_sizes},
                   world);
  train::check_evaluation(ranks, found.workload, found.recording);
  collectives::require_same(world, graph::graph_sha256(found.recording.graph), "evaluation");
  return found;
}

}  // namespace trireme::session
