#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "trireme/engine/checkpoint/checkpoint_folder.h"
#include "trireme/engine/train/checkpoint_job.h"
#include "trireme/engine/train/rank_session.h"

namespace trireme::train {

/// Writes the state of a session as checkpoints that are whole or not there (docs/decisions/0013), while its steps go
/// on or while it waits. Every rank writes an equal share of its stage, so that a replica more makes it faster.
///
/// Every rank makes one and calls the same methods in the same order, but for `is_published`. Caller-synchronised.
class CheckpointWriter {
 public:
  /// world       outlives the writer.
  /// folder      on a file system that all ranks share.
  /// facts       of training_facts.
  CheckpointWriter(const collectives::World& world, checkpoint::Folder folder,
                   checkpoint::Facts facts, CheckpointErrors on_error = CheckpointErrors::kStop);

  /// Begins a checkpoint of the state after the last step: a copy of this rank's share is made, which a thread
  /// writes. Waits for the one before.
  ///
  /// Errors   those of `finish`; of check_replicas.
  /// Memory   the copy, until it is written, beside what memory_use counts: (parameters + optimizer state) /
  ///          replicas.
  void begin(RankSession& session);

  /// Waits until what was begun is on the device and published; nothing where nothing is under way.
  ///
  /// Errors   kCorruptData where a number to be written is not finite and the options do not allow it;
  ///          kIo, kResourceExhausted, naming rank and path, on every rank, where a failure is to stop the training:
  ///          else rank 0 warns, and there is no such checkpoint. What was published before stays.
  void finish();

  /// Both, without the copy; blocks.
  void save(RankSession& session);

  /// On rank 0: the step of what was begun, once it is published; nothing before. Does not block. Errors   of `finish`.
  std::optional<std::int64_t> published();

 private:
  void start(RankSession& session, bool copies);
  bool has_failed(const std::string& problem);
  void give_up(const std::string& problem);

  const collectives::World& world_;
  checkpoint::Folder folder_;
  checkpoint::Facts facts_;
  CheckpointErrors on_error_;
  std::unique_ptr<CheckpointJob> job_;
};

/// The newest checkpoint that is whole. Ranks divide its files among them to compare them with
/// their checksums. Newer ones that are damaged are set aside, each with a warning. Nothing where
/// there is none at all. Every rank calls it; blocks.
///
/// Errors   kCorruptData, of the newest, where none is whole; others of Reader.
std::optional<std::int64_t> newest_whole(const collectives::World& world,
                                         const checkpoint::Folder& folder);

}  // namespace trireme::train
