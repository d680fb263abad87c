#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "trireme/plan/schedule/action.h"
#include "trireme/plan/schedule/step_program.h"
#include "trireme/plan/simulate/prices.h"

namespace trireme::analytic {

/// What one microbatch takes in each stage of a pipeline, and between them. Any unit.
struct PipelineTimes {
  std::vector<double> forward;   ///< By stage.
  std::vector<double> backward;  ///< Both gradients; half of it each where a schedule splits them.
  double hop = 0;                ///< Of a message to another rank.
  bool hop_blocks = false;       ///< The sender's compute waits until it is there.
};

/// What becomes of a pipeline's ranks.
struct PlayedPipeline {
  std::vector<double> end;   ///< Of a rank's last action and what it sends then.
  std::vector<double> busy;  ///< In actions.
  std::vector<double> sent;  ///< In sends that block.
  double step() const;       ///< Of the last rank.
};

/// When a rank ran an action.
struct PlayedAction {
  schedule::Action action;
  int rank = 0;
  double begin = 0, end = 0;
};

/// Plays a schedule where all actions of a stage are alike: what simulate::simulate says of the same
/// step (`pipeline_program`), in one pass.
class PipelineClock {
 public:
  /// schedule   passes its check.
  explicit PipelineClock(schedule::Schedule schedule);

  /// actions   added to, where they are wanted: all that is run, each rank's in order.
  PlayedPipeline play(const PipelineTimes& times,
                      std::vector<PlayedAction>* actions = nullptr) const;

  /// For each rank, most bytes that it holds: those of a stage from a microbatch's forward until its
  /// last backward. bytes: by stage.
  std::vector<double> most_held(const std::vector<double>& bytes) const;

 private:
  struct Entry {
    schedule::Action action;
    int rank = 0;
  };

  schedule::Schedule schedule_;
  std::vector<Entry> order_;  ///< One in which all that an action waits for comes before it.
};

/// Which pipeline it is.
struct PipelineKey {
  std::string schedule = "interleaved";
  int num_ranks = 1;
  int stages_per_rank = 1;
  int num_microbatches = 1;
  auto operator<=>(const PipelineKey&) const = default;
};

/// Pipelines by number, each made once. From seven microbatches a rank on, fewer are played: later ones add what the
/// last round of one microbatch a rank has added: exact where stages are alike but for the last, else within 1 %.
///
/// Threads   of one caller.
class PipelineClocks {
 public:
  /// Errors   kInvalidArgument of schedule::make_schedule.
  PlayedPipeline play(const PipelineKey& key, const PipelineTimes& times);
  std::vector<double> most_held(const PipelineKey& key, const std::vector<double>& bytes);

 private:
  const PipelineClock& clock(const PipelineKey& key);

  std::map<PipelineKey, std::unique_ptr<PipelineClock>> clocks_;
};

/// The same pipeline for simulate::simulate, with prices: receives, actions and sends of each rank.
struct PricedPipeline {
  schedule::StepProgram program;
  simulate::Prices prices;
};
PricedPipeline pipeline_program(const schedule::Schedule& schedule, const PipelineTimes& times);

}  // namespace trireme::analytic
