#pragma once

#include "trireme/engine/train/rank_session.h"
#include "trireme/plan/schedule/timeline.h"

namespace trireme::train {

/// What all ranks did in the session's last step, as a timeline named `measured`, on every rank.
/// Work is on the compute track, operations that wait for others on `wait`. Zero is when the first
/// rank of a machine began: ranks of one machine are aligned, machines are not. Every rank calls
/// it.
schedule::Timeline measured_timeline(const collectives::World& world, const RankSession& session);

}  // namespace trireme::train
