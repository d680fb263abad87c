#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trireme/command/run_document.h"
#include "trireme/command/run_folder.h"
#include "trireme/command/self_planner.h"
#include "trireme/command/train.h"
#include "trireme/engine/train/rank_session.h"
#include "trireme/plan/timeline/timeline.h"

namespace trireme::command {

/// Refuses, before anything is started, what RunSession would refuse: a folder that holds a run
/// without --resume, or one in which another process trains.
void check_run_folder(const TrainOptions& options);

/// A rank's part in keeping a run in its folder: the plan, the checkpoint to go on from, new ones,
/// run.json. Methods that say so are called by every rank; rank 0 writes all but shards.
class RunSession {
 public:
  /// Takes the folder; looks whether there is something to go on from. Every rank calls it.
  ///
  /// Errors   kInvalidArgument where the folder holds a run and --resume was not given, or one of
  ///          more steps than are asked for.
  RunSession(const TrainOptions& options, const Context& context, const collectives::World& world);

  /// Looks whether the run would go on as what wrote the checkpoint, as far as that does not need a
  /// plan: before anything is measured. Errors of `begin`.
  void check_goes_on(const Training& training) const;

  /// Copies change bits: those that the run began with stay.
  PlannedCopies copies() const;

  /// Takes the session to where the run is, and notes the start. Every rank calls it.
  ///
  /// Errors   kInvalidArgument where the run would not go on as what wrote the checkpoint.
  void begin(const Training& training, train::RankSession& session);

  /// A checkpoint, where one is due after this step. Every rank calls it.
  void after_step(train::RankSession& session);

  bool is_evaluation_due(const train::RankSession& session) const;

  /// A checkpoint of the last step, if there is none. Every rank calls it.
  void save_now(train::RankSession& session);

  /// What this start has done, into run.json. On rank 0; elsewhere nothing.
  ///
  /// num_steps   done in all; fewer than were asked for where the run was stopped.
  void end(const Segment::Measured& measured, const std::vector<timeline::Timeline>& timelines,
           std::int64_t num_steps);

  /// Step that the run went on from; nothing where it began.
  std::optional<std::int64_t> resumed_from() const { return start_; }

  const RunFolder& folder() const { return folder_; }

 private:
  void say_changes() const;
  train::DescribeChange describe(const graph::Graph& now) const;
  const TrainOptions& options_;
  const Context& context_;
  const collectives::World& world_;
  RunFolder folder_;
  std::optional<std::int64_t> start_;
  std::optional<std::int64_t> saved_;  ///< Step of the last checkpoint.
  checkpoint::Facts facts_;
  RunDocument document_;      ///< On rank 0.
  bool has_segment_ = false;  ///< Likewise: this start has steps to do.
};

}  // namespace trireme::command
