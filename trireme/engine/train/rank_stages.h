#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "trireme/engine/pipeline/stage_worker.h"
#include "trireme/engine/program/stage_program.h"
#include "trireme/engine/train/replica_buffers.h"

namespace trireme::train {

/// The stages that a rank runs: one, or several where the schedule gives it several.
///
/// Confined to the thread that runs the step.
class RankStages {
 public:
  /// recording, sites   outlive this.
  /// stages             of the plan, ascending, at least one.
  struct Options {
    pipeline::StageWorker::Purpose purpose = pipeline::StageWorker::Purpose::kTrain;
    std::filesystem::path scratch = {};  ///< As for StageWorker.
    program::Capture capture = program::Capture::kOn;
  };
  RankStages(const record::Recording& recording, const layout::Plan& plan,
             const std::vector<int>& stages, const program::SiteTable& sites,
             const Options& options);

  /// By index in the plan.
  const program::StageProgram& program(int stage) const { return held_.at(stage)->program; }
  std::map<int, pipeline::StageWorker*> workers() const;

  /// Losses that are made here, and of those with a weight the ones whose total is needed here; ascending.
  const std::set<int>& losses() const { return losses_; }
  const std::set<int>& weighed_losses() const { return weighed_; }

  /// Names of the batch's fields that forwards take, each once.
  const std::vector<std::string>& fields() const { return fields_; }

  /// Stages whose forwards take any.
  int num_readers() const { return num_readers_; }

  /// Sum of a loss that is made here over a microbatch of the step.
  double loss_sum(int microbatch, int loss) const;

  /// Statistics of batch norms, [microbatch], in node order.
  Statistics take_statistics();

  /// Why stages are run by torch's engine though they are to be captured, a line each; none twice.
  std::vector<std::string> take_refusals();

 private:
  struct Held {
    Held(const record::Recording& recording, const layout::Plan& plan, int stage,
         const program::SiteTable& sites, const Options& options)
        : program(recording, plan, stage, sites, options.capture),
          worker(recording, program, options.purpose, options.scratch) {}
    program::StageProgram program;
    pipeline::StageWorker worker;
  };

  std::map<int, std::unique_ptr<Held>> held_;
  std::map<int, const Held*> makers_;  ///< By loss.
  std::set<int> losses_, weighed_;
  std::vector<std::string> fields_;
  int num_readers_ = 0;
  std::set<std::string> told_;  ///< Refusals that were taken.
};

}  // namespace trireme::train
