#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "trireme/engine/pipeline/step_runner.h"
#include "trireme/engine/train/batch_reader.h"
#include "trireme/engine/train/measured_timeline.h"
#include "trireme/engine/train/place_in_mesh.h"
#include "trireme/engine/train/rank_batches.h"
#include "trireme/engine/train/rank_operations.h"
#include "trireme/engine/train/rank_stages.h"
#include "trireme/engine/train/reader_threads.h"
#include "trireme/engine/train/step_reading.h"
#include "trireme/engine/train/training_options.h"
#include "trireme/engine/train/training_state.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/wire/collectives/world.h"

namespace trireme::train {

/// A workload being trained by the ranks of a plan's mesh, each its stages of the pipeline and its
/// replicas' parts of the batch. Same bits as SerialSession (docs/concepts/equality.md).
///
/// A failure on one rank ends the session on all of them with the same error. Caller-synchronised;
/// one thread.
class RankSession {
 public:
  /// recorded   of the workload's model in train mode; shares its tensors. Parameters of other
  ///            stages, frozen ones too, lose their memory. Both outlive the session.
  /// Errors     kInvalidArgument where plan, graph, data and world do not fit each other, on every
  ///            rank where ranks differ.
  RankSession(const collectives::World& world, const Workload& workload,
              const record::Recording& recorded, const layout::Plan& plan,
              const TrainingOptions& options);
  ~RankSession();

  RankSession(const RankSession&) = delete;
  RankSession& operator=(const RankSession&) = delete;

  /// The next step, as SerialSession::step; the report is the same on all ranks but for times.
  StepReport step();

  /// A step in two halves, for an optimizer of the caller's (kOwnOptimizer): all up to the update; then
  /// the caller changes what `gradients` names, in place; then the rest.
  ///
  /// Errors   kInvalidArgument, on every rank, with another optimizer and out of turn.
  StepReport backward();
  void update();

  /// Whose turn it is: kInvalidArgument where `step`, `backward` or `update` would be out of turn.
  void require_step() const;
  void require_backward() const;
  void require_update() const;

  /// Between the halves: the sums of the step by parameter, shaped as these, of those that this rank
  /// updates and that got one. Views.
  Tensors gradients() const;

  /// Goes on from a checkpoint, of any layout: its tensors, its step.
  ///
  /// Errors   those of restore. Every rank calls it, before its first step.
  void resume(checkpoint::Reader& reader);

  /// Throws kCorruptData, on every rank, where replicas of a stage hold other values than most; a
  /// step does it for the step before. Every rank calls it, after a step; blocks.
  void check_replicas();

  /// Throws kCorruptData, on every rank, where a value of a parameter is NaN or infinite, unless
  /// the options allow it: an update can make one from finite gradients. Every rank calls it.
  void check_finite();

  /// For as long as it lives, all values of the stages here can be read, those that are in shards too. Every rank makes one,
  /// between steps; blocks. Memory: the stages' parameters.
  class WholeValues {
   public:
    explicit WholeValues(const RankSession& session);
    ~WholeValues();
    WholeValues(const WholeValues&) = delete;
    WholeValues& operator=(const WholeValues&) = delete;

   private:
    const RankSession& session_;
    std::vector<int> buckets_;
  };

  /// The gradients of the last step of all parameters that are owned here; after `step`. Every rank calls it; blocks.
  parameters::GradientBuffers& whole_gradients() {
    operations_->gather_gradients();
    return sums_.gradients();
  }

  /// On all ranks each value and its moving average (OptimizerOptions::average_decay) change places: for an evaluation,
  /// and again after it. Every rank calls it, between steps; blocks.
  void exchange_averages();

  std::int64_t next_step() const { return next_step_; }
  TrainingState state() {
    return {recording_,
            plan_,
            store_,
            operations_->optimizer(),
            stages_,
            operations_->part(),
            &operations_->loss_scale()};
  }
  const layout::Plan& plan() const { return plan_; }
  const TrainingOptions& options() const { return options_; }
  /// That this rank runs, ascending.
  const std::vector<int>& stages() const { return stages_; }
  const PlaceInMesh& place() const { return place_; }
  const record::Recording& recording() const { return recording_; }
  const parameters::ParameterStore& store() const { return store_; }
  const parameters::LaneAccumulator& sums() const { return sums_; }
  const RankOperations& operations() const { return *operations_; }
  const schedule::StepProgram& program() const { return program_; }

  /// What this rank did in the last step, named `measured`.
  RanProgram last_step() const {
    return {"measured", next_step_ - 1, program_, runner_->times(), runner_->begin()};
  }

  /// What reading took, up to the last step.
  const StepReading& last_reading() const { return reading_; }

  /// Bytes of messages that this rank held when it held most, in the last step.
  std::int64_t most_message_bytes() const { return mailbox_->most_held_bytes(); }

 private:
  class Sink;

  void begin(std::int64_t step);
  StepReport report();

  collectives::World world_;
  const Workload& workload_;
  const record::Recording& recorded_;
  record::Recording recording_;  ///< With the plan's copies.
  layout::Plan plan_;
  TrainingOptions options_;
  ReaderThreads reader_threads_;
  StepReader reader_;
  PlaceInMesh place_;
  std::vector<int> stages_;
  parameters::ParameterStore store_;
  schedule::StepProgram program_;
  Groups groups_;
  parameters::LaneAccumulator sums_;
  std::unique_ptr<Sink> sink_;
  program::SiteTable sites_;
  RankStages held_;
  RankBatches batches_;
  std::unique_ptr<RankOperations> operations_;
  std::unique_ptr<pipeline::Mailbox> mailbox_;
  std::unique_ptr<pipeline::StepRunner> runner_;
  std::optional<pipeline::StepInput> input_;  ///< Of the step under way, or the last one.
  bool is_between_ = false;                   ///< The halves of a step.
  StepReading reading_;
  std::chrono::steady_clock::time_point begin_;
  std::int64_t next_step_ = 0;
};

}  // namespace trireme::train
