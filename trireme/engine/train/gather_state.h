#pragma once

#include <map>
#include <string>

#include "trireme/engine/train/rank_session.h"
#include "trireme/engine/train/run_record.h"

namespace trireme::train {

/// Parameters and buffers of the whole model, by registered name, on rank 0; empty elsewhere. Every
/// rank calls it; blocks. Memory: the whole model's, on rank 0.
///
/// workload   that the session trains.
Tensors gather_state(const collectives::World& world, const Workload& workload,
                     const RankSession& session);

}  // namespace trireme::train
