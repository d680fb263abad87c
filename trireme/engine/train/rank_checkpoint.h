#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trireme/engine/checkpoint/checkpoint_folder.h"
#include "trireme/engine/train/rank_session.h"

namespace trireme::train {

/// Writes the session's state after its last step as a checkpoint that is whole or not there
/// (docs/decisions/0013). Every rank writes an equal share of its stage, so that a replica more makes
/// it faster. Every rank calls it; blocks until it is on the device.
///
/// folder   on a file system that all ranks share.
/// facts    of training_facts.
/// Errors   kCorruptData where a number to be written is not finite and the options do not allow it;
///          kIo, kResourceExhausted, naming rank and path, on every rank; those of check_replicas.
///          What was published before stays.
void save_checkpoint(const collectives::World& world, RankSession& session,
                     const checkpoint::Folder& folder, const checkpoint::Facts& facts);

/// The newest checkpoint that is whole. Ranks divide its files among them to compare them with
/// their checksums. Newer ones that are damaged are set aside, each with a warning. Nothing where
/// there is none at all. Every rank calls it; blocks.
///
/// Errors   kCorruptData, of the newest, where none is whole; others of Reader.
std::optional<std::int64_t> newest_whole(const collectives::World& world,
                                         const checkpoint::Folder& folder);

}  // namespace trireme::train
