#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trireme/engine/train/rank_checkpoint.h"
#include "trireme/engine/train/rank_session.h"
#include "trireme/plan/schedule/timeline.h"
#include "trireme/session/best_checkpoints.h"
#include "trireme/session/followed_run.h"
#include "trireme/session/planning.h"
#include "trireme/session/run_document.h"
#include "trireme/session/run_folder.h"
#include "trireme/session/training.h"

namespace trireme::session {

/// Refuses, before anything is started, what RunKeeper would refuse: a folder that holds a run
/// without --resume, or one in which another process trains.
void check_run_folder(const RunOptions& options);

/// A checkpoint's folder, and whether its files are still to be compared with their checksums.
struct CheckpointPlace {
  std::filesystem::path folder;
  checkpoint::Checksums checksums = checkpoint::Checksums::kCompare;
};

/// kInvalidArgument where a checkpoint is of another model.
void require_same_model(const checkpoint::Index& index, const graph::Graph& recorded);

/// Takes a session to where a checkpoint is. Every rank calls it.
///
/// facts    of train::training_facts, now.
/// Errors   kInvalidArgument where the training would not go on as what wrote the checkpoint; those
///          of checkpoint::Reader.
void resume_from(const CheckpointPlace& checkpoint, const checkpoint::Facts& facts,
                 const TrainingOptions& options, const train::DescribeChange& describe,
                 train::RankSession& session, const Logger& logger);

/// A rank's part in keeping a run in its folder: the plan, the checkpoint to go on from, new ones,
/// run.json. Methods that say so are called by every rank; rank 0 writes all but shards.
class RunKeeper {
 public:
  /// Takes the folder; looks whether there is something to go on from. Every rank calls it.
  ///
  /// Errors   kInvalidArgument where the folder holds a run and --resume was not given, or one of
  ///          more steps than are asked for.
  RunKeeper(const SessionOptions& options, const collectives::World& world);

  /// Looks whether the run would go on as what wrote the checkpoint, as far as that does not need a
  /// plan: before anything is measured. Errors of `begin`.
  void check_goes_on(const Training& training) const;

  /// Copies change bits: those that the run began with stay.
  PlannedCopies copies() const;

  /// Takes the session to where the run is, and notes the start. Every rank calls it.
  ///
  /// Errors   kInvalidArgument where the run would not go on as what wrote the checkpoint.
  void begin(const Training& training, train::RankSession& session);

  /// A checkpoint, where one is due after this step; perhaps written beside those that follow. Every rank calls it.
  void after_step(train::RankSession& session);

  /// What an evaluation means to the run: one that is among the best keeps its checkpoint, which is written where it is
  /// of this step. Every rank calls it.
  ///
  /// Returns  why the run should stop now, for people; empty: it need not.
  /// Errors   kInvalidArgument where there is no loss or metric by which it could be judged.
  std::string after_evaluation(train::RankSession& session, const MadeEvaluation& evaluation);

  /// Whether evaluations have come from elsewhere since `take_news`; on rank 0, else false.
  bool has_news();

  /// Those. Every rank calls it.
  std::vector<MadeEvaluation> take_news();

  /// Whether one has been begun elsewhere that is still to come. Every rank calls it.
  bool awaits_news();

  /// Folder of the checkpoint of a step; empty: there is none.
  std::string checkpoint_at(std::int64_t step) const;

  /// Folder of the checkpoint with the best evaluation; empty: there is none.
  std::string best_checkpoint() const;

  /// By the run's own ranks.
  bool is_evaluation_due(const train::RankSession& session) const;

  /// A checkpoint of the last step, if there is none; waits until it is published. Every rank calls it.
  void save_now(train::RankSession& session);

  /// What this start has done, into run.json, or that the one before had done all steps. On rank 0; elsewhere nothing.
  ///
  /// num_steps   done in all.
  /// is_stopped  before its end, by who asked for it.
  void end(const Measured& measured, const std::vector<schedule::Timeline>& timelines,
           std::int64_t num_steps, bool is_stopped);

  /// Step that the run went on from; nothing where it began.
  std::optional<std::int64_t> resumed_from() const { return start_; }

  const RunFolder& folder() const { return folder_; }

 private:
  void say_changes() const;
  train::DescribeChange describe(const graph::Graph& now) const;
  bool may_copy(const layout::Plan& plan) const;
  void finish_writing();
  void announce(std::int64_t step);
  void take_best();
  void begin_evaluations();
  void look_for_news();
  void remove_old();
  bool is_published(std::int64_t step) const;

  const SessionOptions& options_;
  const collectives::World& world_;
  RunFolder folder_;
  std::optional<std::int64_t> start_;
  std::optional<std::int64_t> saved_;      ///< Step of the last checkpoint that was begun.
  std::optional<std::int64_t> announced_;  ///< And of the last that is known to be published.
  checkpoint::Facts facts_;
  std::optional<train::CheckpointWriter> writer_;
  bool writes_beside_ = false;
  BestCheckpoints best_;
  std::optional<Evaluations> evaluations_;  ///< Made elsewhere; on rank 0.
  std::string news_;                        ///< Of them, as lines.
  RunDocument document_;                    ///< On rank 0.
  bool has_segment_ = false;                ///< Likewise: this start has steps to do.
  bool lacks_end_ = false;  ///< Likewise: the last start did all steps, and was killed.
};

/// Tells a checkpoint from others: its step and a hash of its index, which has those of all tensors.
std::string checkpoint_identity(const std::filesystem::path& checkpoint);

}  // namespace trireme::session
