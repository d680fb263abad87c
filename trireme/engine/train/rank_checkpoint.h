#pragma once

#include <cstdint>
#include <string>

#include "trireme/engine/checkpoint/folder.h"
#include "trireme/engine/train/rank_session.h"

namespace trireme::train {

/// Writes the session's state after its last step as a checkpoint that is whole or not there
/// (DESIGN contract 9). Every rank writes an equal share of its stage, so that a replica more makes
/// it faster. Every rank calls it; blocks until it is on the device.
///
/// folder   on a file system that all ranks share.
/// facts    of training_facts.
/// Errors   kIo, kResourceExhausted, naming rank and path, on every rank; those of check_replicas.
///          What was published before stays.
void save_checkpoint(const World& world, RankSession& session, const checkpoint::Folder& folder,
                     const checkpoint::Facts& facts);

}  // namespace trireme::train
