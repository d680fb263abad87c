#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "trireme/engine/parameters/lane_accumulator.h"
#include "trireme/engine/parameters/replica_sums.h"
#include "trireme/engine/pipeline/mailbox.h"
#include "trireme/engine/pipeline/operations.h"
#include "trireme/engine/program/buffer_commit.h"
#include "trireme/engine/train/loss_scale.h"
#include "trireme/engine/train/place_in_mesh.h"
#include "trireme/engine/train/rank_batches.h"
#include "trireme/engine/train/rank_groups.h"
#include "trireme/engine/train/rank_stages.h"
#include "trireme/engine/train/replica_buffers.h"
#include "trireme/engine/train/training_options.h"
#include "trireme/engine/train/value_shards.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/schedule/step_program.h"
#include "trireme/wire/collectives/group.h"
#include "trireme/wire/collectives/world.h"

namespace trireme::train {

/// What a rank works on; everything outlives whoever uses it.
struct RankParts {
  int rank;
  const std::vector<int>& stage_indices;  ///< In the plan.
  const record::Recording& recording;     ///< With the plan's copies.
  const layout::Plan& plan;
  PlaceInMesh place;
  const schedule::StepProgram& program;
  const parameters::ParameterStore& store;
  std::optional<int> shards_of;  ///< The replica whose shards it keeps state of; not set: of all.
  parameters::LaneAccumulator& sums;
  RankStages& stages;
  const Groups& groups;
  const transport::WatchOptions& watch;
  RankBatches& batches;
};

/// The operations of a step beside stages and channels, for one rank.
///
/// Confined to the thread that runs the step.
class RankOperations : public pipeline::Operations {
 public:
  RankOperations(const RankParts& parts, const TrainingOptions& options);

  /// input     outlives the step.
  /// weights   of the rank's losses, [microbatch][loss].
  void begin_step(const pipeline::StepInput& input, std::vector<std::vector<double>> weights);

  void run(const schedule::Operation& operation) override;
  void begin_action(const schedule::Action& action) override;
  void end_action(const schedule::Action& action) override;
  const std::vector<double>& totals() const override { return scaled_totals_; }
  std::span<std::byte> tie_memory(const schedule::Channel& channel, int item) override;

  /// Of the last step, the same on all ranks.
  const StepLosses& losses() const { return losses_; }

  /// Of the last step: the sum of each loss over the samples of each microbatch of all replicas.
  const std::vector<std::vector<double>>& microbatch_sums() const { return microbatch_sums_; }

  /// Compares the values with those of the other replicas, as the next step will. Every rank calls
  /// it; blocks.
  ///
  /// Errors   kCorruptData on all ranks, naming the replica that differs.
  void check_replicas();

  /// The sums of the last step, each replica's part of them where state is shared, become whole on all, until the next
  /// step. Every rank calls it; blocks.
  void gather_gradients();

  /// Null where no other rank has the same stages.
  ValueShards* values() const { return values_.get(); }

  parameters::Optimizer& optimizer() const { return *optimizer_; }
  const parameters::Part& part() const { return part_; }
  LossScale& loss_scale() { return loss_scale_; }

  /// Whether the last step updated nothing, since a scaled number was not finite; and its scale.
  bool is_skipped() const { return is_skipped_; }
  double scale_of_step() const { return loss_scale_.is_on() ? scale_of_step_ : 0; }
  double gradient_norm() const { return norm_; }

  /// Whether any rank's backward reached the parameter in the last step.
  bool has_gradient(const std::string& parameter) const {
    return reached_[parameters_.at(parameter)];
  }

  /// Which of these the step moves: all, or those of its turn.
  parameters::HasGradient moved() const;

 private:
  collectives::Group& group(schedule::GroupKind kind) const;
  std::vector<std::byte> gather(schedule::GroupKind kind, std::span<const std::byte> mine,
                                const char* what);
  void weigh();
  void reduce(int bucket);
  void join(int bucket);
  void exchange();
  std::vector<std::uint64_t> my_words() const;
  void take_words(std::span<const std::uint64_t> words);
  void commit();
  void gather_values(int bucket);
  void gather(const at::Tensor& mine, const at::Tensor& flat, int bucket, const char* what);
  void attach_hashes();
  void norm();
  void judge(const std::string& problem);
  void end_scaled_step();
  void set_totals(std::vector<double> totals);
  std::function<bool(const std::string&)> counts_in_step() const;
  void update();
  void wait(transport::Work& work, const collectives::Group& group, const char* what) const;
  ErrorContext place(const char* what) const;

  RankParts parts_;
  TrainingOptions options_;
  std::unique_ptr<parameters::Optimizer> optimizer_;
  std::function<bool(std::int64_t, const std::string&)> counts_;  ///< As counting_losses.
  parameters::Part part_;                                         ///< That is updated here.
  program::BufferCommits commits_;
  ReplicaBuffers buffers_;
  std::unique_ptr<parameters::Reducer> reducer_;  ///< Null where no other rank has the same stages.
  std::unique_ptr<ValueShards> values_;           ///< Likewise.
  std::set<int> last_stages_;                     ///< Whose last backward comes, or has come.
  bool weighs_ = false;                           ///< Its program begins with kWeigh.
  std::map<int, at::Tensor> remote_sites_;        ///< Sums of sites held elsewhere.
  const pipeline::StepInput* input_ = nullptr;
  LossScale loss_scale_;
  double scale_of_step_ = 1;
  std::string overflow_;  ///< What of a scaled step is not finite.
  bool is_skipped_ = false;
  std::vector<double> totals_;                ///< Weight of each loss over the step.
  std::vector<double> scaled_totals_;         ///< For backwards.
  std::vector<std::vector<double>> weights_;  ///< Of the rank, [microbatch][loss].
  StepLosses losses_;
  std::vector<std::vector<double>> microbatch_sums_;  ///< [global microbatch][loss]
  double norm_ = 0;
  bool has_warned_ = false;                ///< That a number is not finite.
  std::map<std::string, int> parameters_;  ///< Index in Graph::parameters, by name.
  std::vector<bool> reached_;              ///< By that index.
};

}  // namespace trireme::train
