#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "trireme/command/run_options.h"
#include "trireme/command/training_report.h"
#include "trireme/command/verbs.h"
#include "trireme/engine/record/recording.h"
#include "trireme/engine/train/training_options.h"

namespace trireme::command {

/// What `train` is asked to keep in a folder.
struct RunOptions {
  std::string folder;  ///< Empty: nothing is kept.
  bool resume = false;
  std::int64_t checkpoint_every = 100;  ///< Steps; 0: only at the end.
  int keep_last = 3;
  std::int64_t evaluate_every = 0;  ///< Steps; 0: before the first step and at the end.
  bool may_copy = false;            ///< At the first start: copies change bits and stay.
  std::string objective = "speed";
  double max_slowdown = 1.25;  ///< As DecideOptions has it.
  std::int64_t device_memory_bytes = 0;
  GivenOptions given;  ///< All of them, as a resumed run needs them.
};

struct TrainOptions {
  PlanOptions plan;
  ReportOptions report;
  std::string save;
  std::string timeline;
  std::string profile;  ///< The plan's, or what it is to be made from; empty: it is measured.
  std::string topology = "topology.json";
  bool serial = false;
  bool no_first_step_check = false;
  RunOptions run;
  train::SessionOptions session;
  std::vector<std::string> buffers;  ///< --buffer, for `session`.

  /// Whether a training that is stopped leaves what it has learnt.
  bool keeps_something() const { return !run.folder.empty() || !save.empty(); }

  /// Whether these ranks measure and plan: in a run's folder, and where several were given neither a
  /// plan nor stages and replicas that make as many ranks.
  bool plans_itself(int world_size) const;
};

/// Everything that a training is made of; the recordings share the workload's tensors.
struct Training {
  Workload workload;
  std::int64_t data_bytes;  ///< Live tensors beside the model's: the samples.
  record::Recording recorded;

  /// microbatch   samples of each run.
  Training(const Context& context, std::int64_t microbatch);
};

/// All stages in this process, one after the other. Returns the exit code, as below.
int train_serially(const TrainOptions& options, const Context& context);

/// This rank's part.
///
/// leave   called when the ranks have nothing more to do together: what follows may take any time.
int train_rank(const TrainOptions& options, const Context& context, const collectives::World& world,
               const std::function<void()>& leave);

/// What is written in the end must not fail only then. kIo.
void check_outputs(const TrainOptions& options);

/// Whatever can be found wrong before processes are started, data prepared and models made: a plan
/// and its ranks, the batch, the optimizer, outputs, the run's folder. kInvalidArgument, kIo,
/// kUnavailable where another process trains there.
void check_before_start(const TrainOptions& options, const Context& context);

}  // namespace trireme::command
