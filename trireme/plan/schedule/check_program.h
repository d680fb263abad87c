#pragma once

#include "trireme/plan/schedule/action.h"
#include "trireme/plan/schedule/step_facts.h"
#include "trireme/plan/schedule/step_program.h"

namespace trireme::schedule {

/// Proves that `program` is a whole step that can be run:
///
///  * channels are those that the facts' messages need, groups those of the mesh, each in order,
///    with the right ranks;
///  * each rank's computes are the schedule's; before each stand exactly the recvs that it needs,
///    after it exactly its sends; each bucket is reduced once, started inside the action that
///    completes its gradients, in the same order on all replicas, and joined after it; sharded values are whole where
///    whole_stages.h says, and only there; the tail is
///    as in step_program.h; nothing else happens;
///  * run under rendezvous semantics (rendezvous.h) all messages match and no rank waits for ever;
///    `most_held` tells how many buffers each channel then needs.
///
/// schedule  any; `check`ed (schedule_check.h) first. Of an evaluation: `forwards`.
/// program   any.
/// Errors    kInvalidArgument, naming rank, position and operation, expected and actual.
/// Cost      linear in operations, logarithmic in channels.
void check(const StepProgram& program, const Schedule& schedule, const StepFacts& facts);

}  // namespace trireme::schedule
