#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trireme/collectives.h"
#include "trireme/model.h"
#include "trireme/plan.h"

namespace trireme {

/// What one step was.
struct StepReport {
  std::int64_t step = 0;  ///< From 0.
  StepLosses losses;
  /// The sum of each loss over each microbatch of the batch, in order; nothing where one process runs all stages.
  std::vector<std::vector<double>> microbatch_sums;
  double gradient_norm = 0;  ///< Before clipping; 0 where no step needs it.
  double loss_scale = 0;     ///< Of the step; 0: losses are not scaled.
  bool is_skipped = false;   ///< A scaled number was not finite: nothing was updated.
  double seconds = 0;
  double data_wait_seconds = 0;  ///< Of these, those in which the rank waited for samples.
  double compute_seconds = 0;    ///< Processor time of this rank's forwards and backwards; 0 where
                                 ///< one process runs all stages.
};

/// When checkpoints are written.
enum class CheckpointWrites : std::uint8_t {
  kAuto,    ///< Beside the steps where memory allows a copy of what is written, else:
  kWait,    ///< while the step waits.
  kBeside,  ///< From a copy, by a thread, while the steps go on.
};

/// What a checkpoint that cannot be written does to a training: a full disk, say.
enum class CheckpointErrors : std::uint8_t {
  kStop,      ///< Ends it; what was published before stays.
  kContinue,  ///< A warning; the next one is tried. Numbers that are not finite end it all the same.
};

/// The folder that a run is kept in: plan, metrics, checkpoints, run.json. One run at a time. How often
/// things happen is for `run` and `run_step`; a loop of `step` calls `save` and `evaluate`.
struct RunOptions {
  std::string folder;   ///< Empty: nothing is kept.
  bool resume = false;  ///< Resume from the newest whole checkpoint, if there is one.
  std::int64_t checkpoint_every = 100;  ///< Steps; 0: only at the end.
  int keep_last = 3;                    ///< Checkpoints that stay.
  int keep_best = 0;    ///< Beside them those with the best evaluations, of which each gets one.
  std::string best_by;  ///< A loss or metric of evaluations; empty: the step loss.
  bool best_is_most = false;  ///< As of an accuracy.
  /// Evaluations in a row that are no better than the best before them, after which the run stops; 0: never.
  int patience = 0;
  std::optional<double> target;  ///< An evaluation that is as good stops the run.
  CheckpointWrites checkpoint_writes = CheckpointWrites::kAuto;
  CheckpointErrors checkpoint_errors = CheckpointErrors::kStop;
  std::int64_t evaluate_every = 0;  ///< Steps; 0: before the first step and at the end.
  /// Not by the run's own ranks, but for the last: by a session that follows the run (Session::follow), for which there is
  /// a checkpoint where an evaluation is due. What it finds comes some steps later; `best_by` and its like go by it then.
  bool evaluates_elsewhere = false;
  /// Options of a command line, which run.json remembers for the run that resumes.
  std::map<std::string, std::vector<std::string>> given;
};

/// Another forward over a session's parameters, recorded in eval mode, and its data.
namespace session {
struct OtherForward;
}
using RecordedEvaluation = std::shared_ptr<const session::OtherForward>;

/// What an evaluation found, the same on every rank.
struct Evaluated {
  StepLosses losses;
  std::vector<std::vector<double>> microbatch_sums;  ///< As in StepReport.
};

/// Told on rank 0, each from the thread that calls the session; any may be empty. What one throws ends
/// the session on all ranks.
struct SessionCallbacks {
  std::function<void(const StepReport&)> on_step;
  /// Of `run`, but for the last, which SessionEnd has.
  std::function<void(std::int64_t steps_done, const StepLosses&)> on_evaluation;
  std::function<void(std::int64_t steps_done, const std::string& folder)> on_checkpoint;
  std::function<void(const Plan&, const std::string& why)> on_plan;  ///< Where it was measured.
  std::function<void(const std::string&)> on_phase;  ///< What a long preparation is about.
};

/// Weights that a training begins with, instead of those that the model makes.
struct InitialWeights {
  std::string file;  ///< Of the safetensors format; empty: none.
  /// Beginnings of names in the file, and what stands in the model in their place; the first that fits counts.
  std::vector<std::pair<std::string, std::string>> renamed;
  /// Takes what fits: the model may have more, less, or a tensor of another shape (a head of its own).
  bool partial = false;
};

/// The same on every rank, but for callbacks.
struct SessionOptions {
  std::string model = "model";  ///< Its name in run.json.
  /// Of the whole run; nothing: a loop of one's own says when it ends.
  std::optional<std::int64_t> num_steps;
  TrainingOptions training;
  InitialWeights initial;

  /// How it is split. Without one the ranks measure and take the best plan within `planning`. Where
  /// `planning` has cuts, or no run is kept and its stages and replicas make as many ranks as there
  /// are, a plan is made of that and nothing is measured.
  std::optional<Plan> plan;
  PlanOptions planning;
  /// Costs are measured, and cuts found by them, also where `planning` says how many stages and replicas
  /// there are; else such a plan has stages of about as many nodes each.
  bool measures = false;
  std::string profile;                     ///< File to plan from instead of measuring.
  std::string topology = "topology.json";  ///< That goes with it.

  RunOptions run;
  std::string metrics_file;  ///< A JSON line per step; else in the run's folder, if there is one.
  BatchSizes batch_sizes = BatchSizes::kAnyElseExact;
  /// Ranks, the last ones of the world, that hold no part of the model: they read the samples of the workload that the others
  /// ask for, ahead of their steps, with `TrainingOptions::reader_threads` threads for each rank that asks. For data that are
  /// dear to decode, and code that has one processor for each process. Changes no bits. Such a rank calls `run` or `follow`
  /// (Session::is_reader).
  int reader_ranks = 0;
  /// Parameters take no memory until a rank fills those of its stages, with the values that they would have had: for a
  /// model that is larger than a rank's memory. The first step is not compared then. Tensors that are made by other means
  /// than in-place operators (`torch::randn(...) * 0.02`) take their memory at once.
  bool deferred_init = false;
  bool first_step_check = true;  ///< Compare a small first step with the unmodified model's own.
  bool serial = false;           ///< All stages in this process, one after the other.
  bool handles_signals = false;  ///< SIGINT and SIGTERM ask to stop, SIGUSR1 for a checkpoint.
  SessionCallbacks callbacks;
};

/// What training took, by world rank where it is a list.
struct Measured {
  double median_step_ms = 0;
  double data_wait_fraction = 0;                  ///< Of the step, on the rank that waited most.
  std::vector<std::int64_t> peak_bytes;           ///< Of live tensors.
  std::vector<std::int64_t> resident_peak_bytes;  ///< Of the process.
  /// Forwards and backwards as they ran over as they were profiled, processor time of all ranks:
  /// what of a prediction's error is the machine's speed. Nothing where there is no profile.
  std::optional<double> compute_over_profile;
};

/// How a training has ended.
struct SessionEnd {
  std::int64_t steps_done = 0;
  Measured measured;            ///< On rank 0.
  std::string stopped_by;       ///< Empty where all steps were done.
  std::string checkpoint;       ///< Folder of the last one; empty: there is none.
  std::string best_checkpoint;  ///< Of that with the best evaluation; RunOptions::keep_best.
  std::optional<StepLosses> evaluation;  ///< After the last step, where there is data for it.
};

/// A workload being trained by the ranks of a world, each its stage of the pipeline and its part of
/// the batch, with the bits of one process (docs/concepts/equality.md).
///
///     trireme::run_ranks(argc, argv, 2, [](trireme::World& world) {
///       trireme::Session session(world, make, {.num_steps = 600});
///       session.run();
///       session.save_weights("weights.safetensors");
///     });
///
/// Every rank makes one and calls the same methods in the same order, but for those that are const and
/// the requests, and for ranks that read samples for the others (SessionOptions::reader_ranks). What fails on
/// one rank ends the world: all get the same Error, in this call or their next. Misuse, the same on all ranks, ends
/// nothing: a step after the end, a checkpoint without a folder. Messages name an option as the command line does:
/// `--clip-norm` is the field `clip_norm`, `--steps` is `num_steps`, `--run` is `run.folder`.
///
/// Threads   one at a time; the requests from any, and from callbacks.
class Session {
 public:
  /// Records the model, plans where no plan is given, resumes where that is asked for, and compares
  /// a small step with the unmodified model.
  ///
  /// world    outlives the session.
  /// Errors   kInvalidArgument where model, data, plan, world and options do not fit each other, where
  ///          the first step differs, or the folder holds another run; kUnavailable where another
  ///          process trains in it; those of the model.
  Session(World& world, const MakeWorkload& make, SessionOptions options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Trains up to `num_steps`, with checkpoints and evaluations as the run's options say, until a
  /// stop is asked for; then `finish`. kInvalidArgument without `num_steps`.
  SessionEnd run();

  /// One more step; then what was asked for on any rank, a checkpoint or a stop, for which there is
  /// one too where a run is kept. Errors carry the step; kCorruptData where a loss or a gradient is
  /// not finite. Cost: beside the step a small all_gather.
  StepReport step();

  /// A step as `run` does it: with evaluations and checkpoints that the run's options make due. `finish` writes the
  /// last checkpoint. Errors   of `step`, `evaluate` and `save`.
  StepReport run_step();

  /// A step in two halves, for an optimizer of one's own (OptimizerOptions::name `own`): forwards,
  /// backwards, sums over replicas, the norm. Then the caller updates the parameters that `gradients`
  /// names, in place, on every rank that has them; then `update` gives them to the ranks that share them.
  ///
  ///     session.backward();
  ///     for (auto& [name, gradient] : session.gradients()) ...
  ///     session.update();
  ///
  /// Errors   kInvalidArgument, the same on all ranks, with another optimizer, out of turn, and of
  ///          stages that run in one process (`serial`).
  /// Cost     both together that of `step`.
  StepReport backward();
  void update();

  /// Between the halves: gradients of the parameters that this rank updates and that got one, by name;
  /// shaped as these, f32 (f64 of f64). Views, until the next `backward`.
  std::map<std::string, at::Tensor> gradients() const;

  /// Whether a stop was asked for on any rank, as of the last step; the same on all of them.
  bool stops() const;

  /// Losses over the evaluation data, every sample once, the model in eval mode. kInvalidArgument
  /// where there are none.
  StepLosses evaluate();

  /// Another forward over the same parameters, with data of its own (`Workload::evaluation`), to be evaluated as
  /// often as wanted. Memory: for the time of the recording, pages that forward writes of what is elsewhere.
  ///
  /// make     a workload whose model has the session's parameters and buffers, under the same names.
  /// Errors   kInvalidArgument where it cannot be cut where the session's plan is, and of `serial`; those of
  ///          record_graph. Cost   of the recording, three forwards; of an evaluation, a forward each and an exchange.
  RecordedEvaluation record_evaluation(const MakeWorkload& make);
  Evaluated evaluate(const RecordedEvaluation& recorded);

  /// Writes a checkpoint of this step into the run's folder, where there is none yet. kInvalidArgument
  /// without a folder; kIo, kResourceExhausted.
  void save();

  /// Resumes from a checkpoint's folder, which all ranks see, of any plan and number of ranks, before
  /// the first step. kInvalidArgument where it is of another model or ranks see different ones; kIo
  /// and kCorruptData, naming the file.
  void resume(const std::string& checkpoint);

  /// Evaluates the checkpoints of a run that trains with RunOptions::evaluates_elsewhere, in another world, as they are
  /// published: the newest each time, until the run ends, which evaluates its last step itself, or a stop is asked for.
  /// Any plan and number of ranks find what the run's own would. Rank 0 has `on_evaluation`.
  ///
  /// run      its folder, which all ranks see. This session has none, and has done no step.
  /// Returns  how many evaluations were made.
  /// Errors   kIo where there is no run; kUnavailable where another world follows it; kInvalidArgument where
  ///          the run trains another model, or there are no evaluation data.
  std::int64_t follow(const std::string& run);

  /// Ends the training: checks the weights, writes the last checkpoint, timelines and run.json. No
  /// step may follow; weights may still be asked for.
  SessionEnd finish();

  /// All parameters and buffers by name, on rank 0; elsewhere nothing. Copies, which later steps do
  /// not change. Memory: the whole model's, on rank 0.
  std::map<std::string, at::Tensor> weights();

  /// The same as a safetensors file that rank 0 writes.
  void save_weights(const std::string& path);

  /// What `Workload::examples` says with these weights, on rank 0; empty where there is none or the
  /// whole model does not fit there.
  std::string examples();

  /// The last step as a Chrome trace, with the predicted one where there is one, and the last
  /// evaluation if there was one. Rank 0 writes it.
  /// kInvalidArgument before the first step, and of stages that ran in one process.
  void save_timeline(const std::string& path);

  /// Asks for an end, or a checkpoint, after the step under way, on every rank.
  void request_stop();
  void request_save();

  /// Whether this rank reads samples for others. It calls `run`, `follow` or `finish`, which return, with nothing done, once
  /// the sessions of those that train have ended; all else is kInvalidArgument here.
  bool is_reader() const;

  std::int64_t next_step() const;                    ///< Steps done.
  std::optional<std::int64_t> resumed_from() const;  ///< Nothing where the run began.
  const Plan& plan() const;
  const Graph& graph() const;

 private:
  class Implementation;
  class Reader;
  Implementation& state() const;

  std::unique_ptr<Reader> reader_;  ///< One of both is null.
  std::unique_ptr<Implementation> state_;
};

/// Records the forward pass of a workload's model. Where the graph holds for the microbatch size alone
/// though any was wished for, or the model was traced (Model::set_traced), rank 0 says so on standard error. Errors   kInvalidArgument,
/// kModelFailure, naming the operator that cannot be recorded.
///
/// microbatch   samples of each run.
Graph record_graph(const MakeWorkload& make, std::int64_t microbatch, bool training = true,
                   std::uint64_t seed = 0, BatchSizes sizes = BatchSizes::kAnyElseExact);

/// The same on every rank.
struct MeasureOptions {
  std::int64_t microbatch = 8;
  int threads = 1;                       ///< That each rank computes with; plans take it over.
  std::int64_t device_memory_bytes = 0;  ///< Of each rank; 0: an equal part of the host's.
  TrainingOptions training;              ///< Whose optimizer is measured too.
  bool files =
      false;  ///< For plans that offload: files in training.offload_folder are measured too.
  BatchSizes batch_sizes = BatchSizes::kAnyElseExact;
};

/// What a plan is made from.
struct Measurement {
  Graph graph;
  Profile profile;
  Topology topology;
};

/// Records the model and measures its nodes and the links, all ranks at the same time; every rank calls
/// it and gets the same. Errors   those of record_graph; kInvalidArgument where ranks differ.
Measurement measure_model(World& world, const MakeWorkload& make,
                          const MeasureOptions& options = {});

/// How one training compares with another of the same steps.
struct Comparison {
  /// `uncut`, `plain loop`, `serial executor`; of shards `one process with all shards`, `whole model`.
  std::string against;
  bool must_be_bitwise = true;
  bool is_bitwise = true;
  bool is_finite = true;         ///< The other's losses are; else equal bits say little.
  bool has_all = true;           ///< Each holds tensors of all the names that the other holds.
  std::string first_difference;  ///< The first thing that is not the same bits; empty if none.
  double worst_loss = 0;         ///< Largest relative difference of a step's loss.
  // Known where bits may differ.
  double worst_gradient = 0;  ///< Of the first step, |difference| / |norm| of a tensor.
  double worst_weight = 0;    ///< After the last step, likewise.
  double gradient_limit = 1e-6;
  double weight_limit = std::numeric_limits<double>::infinity();

  /// The same bits, or where those are not promised: losses to 1e-5, gradients and weights to their limits.
  bool passes() const;
};

/// The same on every rank.
struct VerifyOptions {
  std::int64_t num_steps = 3;
  std::uint64_t seed = 0;
  OptimizerOptions optimizer;
  std::optional<Plan> plan;  ///< Without one, a plan is made of `planning`; nothing is measured.
  PlanOptions planning;
  BatchSizes batch_sizes = BatchSizes::kAnyElseExact;
};

struct Verification {
  Plan plan;
  std::vector<Comparison> comparisons;  ///< All on rank 0; elsewhere that of the ranks alone.
  bool passes() const;                  ///< All of them.
};

/// Trains some steps under a plan, one process for each of its ranks, and compares losses, all
/// gradients, weights and buffers: with the serial executor under the same plan, in one process; that
/// one with the uncut model and with a plain torch loop around the unmodified model. In a world of one
/// rank the stages run in this process, and the first comparison is left out.
///
/// Against the serial executor and the uncut model all bits are the same. Against the plain loop too
/// where there is one lane and nothing rounds in another order; else as `Comparison::passes` says
/// (weights under sgd alone: others magnify what rounds differently near zero).
///
/// Every rank calls it.
/// Errors   kInvalidArgument where model, plan and world do not fit each other, ranks differ, or
///          replicas would write a buffer in forward.
/// Cost     four trainings of so many steps, three of them on rank 0 while the others wait.
Verification verify_training(World& world, const MakeWorkload& make,
                             const VerifyOptions& options = {});

}  // namespace trireme
