#pragma once

#include "trireme/engine/train/rank_session.h"
#include "trireme/engine/train/training_state.h"
#include "trireme/model.h"

namespace trireme::train {

/// Parameters and buffers of the whole model, by registered name, on rank 0; empty elsewhere. Every
/// rank calls it; blocks. Memory: the whole model's, on rank 0; elsewhere a bucket that is in shards.
///
/// workload   that the session trains.
Tensors gather_state(const collectives::World& world, const Workload& workload,
                     const RankSession& session);

/// Gives the model's parameters and buffers these values, and memory where theirs is elsewhere: a
/// training has ended and the module is to be used. tensors: of gather_state; shares them.
void give_state(const Model& model, const Tensors& tensors);

}  // namespace trireme::train
