#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trireme/command/planning.h"
#include "trireme/command/run_document.h"
#include "trireme/command/run_folder.h"
#include "trireme/command/train.h"
#include "trireme/engine/train/rank_session.h"
#include "trireme/plan/timeline/timeline.h"

namespace trireme::command {

/// A rank's part in keeping a run in its folder: the plan, the checkpoint to go on from, new ones,
/// run.json. Methods that say so are called by every rank; rank 0 writes all but shards.
class RunSession {
 public:
  /// Takes the folder; looks whether there is something to go on from. Every rank calls it.
  ///
  /// Errors   kInvalidArgument where the folder holds a run and --resume was not given, or one of
  ///          more steps than are asked for.
  RunSession(const TrainOptions& options, const Context& context, const train::World& world);

  /// Looks whether the run would go on as what wrote the checkpoint, as far as that does not need a
  /// plan: before anything is measured. Errors of `begin`.
  void check_goes_on(const Training& training) const;

  /// A measurement of these ranks that was kept, or that the options name; the same answer on all
  /// ranks, the measurement on rank 0. Every rank calls it.
  bool has_measurement(const graph::Graph& graph);

  /// Keeps a new one.
  void keep(Measurement measurement);

  /// The best plan by the measurement, on every rank; rank 0 prints what is said about it. Every
  /// rank calls it.
  layout::Plan decide(const graph::Graph& graph);

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
  std::string profile_file() const { return file_for("profile"); }
  std::string topology_file() const { return file_for("topology"); }

 private:
  std::string file_for(const std::string& what) const;
  Measurement named_measurement(const graph::Graph& graph) const;
  std::optional<Measurement> kept_measurement(const graph::Graph& graph,
                                              topology::Topology now) const;
  train::DescribeChange describe(const graph::Graph& now) const;
  std::optional<std::vector<graph::NodeId>> pinned_copies() const;
  const TrainOptions& options_;
  const Context& context_;
  const train::World& world_;
  RunFolder folder_;
  std::optional<std::int64_t> start_;
  std::optional<std::int64_t> saved_;  ///< Step of the last checkpoint.
  checkpoint::Facts facts_;
  std::optional<Measurement> measurement_;  ///< On rank 0.
  RunDocument document_;                    ///< Likewise.
  bool has_segment_ = false;                ///< Likewise: this start has steps to do.
};

}  // namespace trireme::command
