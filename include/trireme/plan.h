#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trireme/dtype.h"

namespace trireme {

namespace graph {
struct Graph;
}
namespace profile {
struct Profile;
}
namespace topology {
struct Topology;
}
namespace layout {
struct Plan;
}

/// What decides results: a step's batch and how it is folded (docs/concepts/equality.md).
struct BatchLayout {
  std::int64_t global_batch = 0;  ///< B, samples per step.
  std::int64_t microbatch = 0;    ///< b, samples per microbatch; divides B.
  std::int64_t lanes = 1;         ///< G, data lanes; divides B / b.

  std::int64_t num_microbatches() const { return global_batch / microbatch; }
  std::int64_t microbatches_per_lane() const { return num_microbatches() / lanes; }
  bool operator==(const BatchLayout&) const = default;
};

/// Parameters that are updated in a way of their own.
struct ParameterGroup {
  std::string names;  ///< Pattern of their names: `*` any characters, `?` one, `[ab]`.
  std::optional<double> weight_decay;  ///< Not set: as others.
  double learning_rate_scale = 1;      ///< 0: values stay as they are.
};

/// Steps in which some losses count and some parameters move, as of the two players of a GAN. All losses are computed in
/// each step, so that buffers are written as ever; those that do not count have no gradient, and are only reported.
struct Turn {
  std::vector<std::string> parameters;  ///< Patterns of their names, as ParameterGroup::names.
  std::vector<std::string> losses;      ///< By name.
  std::int64_t num_steps = 1;           ///< In a row.
};

struct OptimizerOptions {
  /// sgd, adamw, lamb, lars, novograd or adafactor; or `own`: the caller's, between the halves of a step
  /// (Session::backward), of whose fields only `clip_norm` means something.
  std::string name = "adamw";
  double learning_rate = 1e-3;
  std::int64_t warmup_steps = 0;  ///< The rate grows linearly to its full value over these.
  std::string decay = "none";     ///< After that: none, inverse_sqrt, linear, cosine or polynomial.
  std::int64_t hold_steps = 0;    ///< Of the full rate, before a decay of the last three begins.
  std::int64_t decay_steps = 0;   ///< Step at which these end: as a rule, of the whole training.
  double decay_power = 1;         ///< Of polynomial.
  double final_rate = 0;          ///< Part of the rate that these leave.
  /// In place of warm-up and decay: what the rate of a step is multiplied by; the same on all ranks.
  std::function<double(std::int64_t step)> rate_schedule;
  double momentum = 0.9;  ///< Of sgd and lars.
  double weight_decay = 0.01;
  std::optional<double> beta1, beta2, epsilon;  ///< Not set: the optimizer's own defaults.
  std::vector<ParameterGroup> groups;           ///< Of groups that a name fits, the last counts.
  /// Taken in order, again and again. Parameters that do not move keep their state too. None: each step is of all.
  std::vector<Turn> turns;
  double clip_norm = 0;  ///< 0: gradients are not clipped.
  /// An exponential moving average of weights (EMA) is kept, of this decay, as 0.999; 0: none. For
  /// TrainingOptions::evaluate_average and `trireme export --average`.
  double average_decay = 0;
};

/// What replicas make, at the end of a step, of a buffer that each has written for itself.
enum class ReplicaPolicy : std::uint8_t {
  kFirst,    ///< All take that of the first.
  kAverage,  ///< All take the mean.
  kSum,      ///< The changes that the step made on each are added to what was before it.
};

/// By the buffer's name.
using ReplicaPolicies = std::map<std::string, ReplicaPolicy>;

/// Loss scaling, for forwards in f16 (Precision): what the loss is multiplied by in backwards. Steps whose numbers are
/// not finite update nothing and halve it.
struct LossScaleOptions {
  double initial = 0;                ///< A power of two; 0: none.
  std::int64_t growth_steps = 2000;  ///< Finite steps after which it is doubled.
};

/// How a model is trained, whatever the plan.
struct TrainingOptions {
  // Changes results.
  std::uint64_t seed = 0;
  bool shuffled = true;  ///< Samples come in another order in each epoch; else as they lie.
  OptimizerOptions optimizer;
  ReplicaPolicies buffers;  ///< Of buffers that forward writes, where there are replicas.
  LossScaleOptions loss_scale;
  /// kF32, or kBf16: partial sums of gradients are rounded to bf16 before they are added, so that replicas send half
  /// the bytes. The bits are the same for every number of replicas and stages. Those of f64 parameters stay f64.
  Dtype gradient_dtype = Dtype::kF32;
  bool tolerant = false;  ///< Takes replicas that do not keep the bits of one.
  // Changes nothing but what is noticed.
  bool allow_nonfinite = false;   ///< Goes on where a loss or a gradient is not finite.
  bool evaluate_average = false;  ///< Evaluations are of the averages of weights.
  /// Steps at which the model is recorded again; early and late, since some of it changes rarely.
  std::vector<std::int64_t> drift_check_steps = {1, 10, 100, 1000};
  // Changes speed only.
  /// Stages are listened to once and replayed without dispatcher and autograd, where that gives the same bits.
  bool capture = true;
  /// On a disk of each host: what stages that offload keep. Empty: the system's folder for temporary files.
  std::filesystem::path offload_folder;
  /// Of each rank, that read and transform its samples ahead of the steps; 0: as many as the first steps show to be
  /// needed. A source in Python gains where it waits for files or its work releases the interpreter.
  int reader_threads = 1;
};

enum class Objective : std::uint8_t {
  kSpeed,   ///< Least step time within the memory there is.
  kMemory,  ///< Least peak with a step of at most `max_slowdown` x the fastest.
  kCost,    ///< Least ranks x step time: ranks that gain too little stay idle.
};

/// Stages whose forwards run again for their backwards, from what they received, instead of keeping what they saved:
/// about a third more work for the memory of one microbatch, or of one region of the stage.
enum class Recompute : std::uint8_t {
  kAuto,  ///< Where the memory is tight, as few as make the fastest plan fit; by hand, none.
  kNone,
  kAll,  ///< That can.
  kRegions,  ///< The same, a region of a stage after another: they hold what is in flight of one region.
};

/// Stages whose microbatches keep what they need for their backwards in a file, unless that comes soon.
enum class Offload : std::uint8_t {
  kNone,
  kAuto,  ///< As Recompute; refused by hand.
  kAll,
};

/// Where cuts fall. All but the first are there to compare with, from descriptions of what other libraries do; they know
/// neither links nor limits of memory.
enum class Balance : std::uint8_t {
  kSearch,      ///< For the objective, by measured costs.
  kUniform,     ///< About as many nodes in each stage.
  kParameters,  ///< The largest number of parameters of a stage is least.
  kTree,  ///< Modules are dealt out from the whole model downwards, by bytes and times of their nodes.
};

/// Which ranks are neighbours in a world that has both stages and replicas.
enum class Placement : std::uint8_t {
  kSpread,  ///< Replicas of a stage: rank = position x replicas + replica; the best order of ranks where these differ.
  kCluster,  ///< The stages of a replica: rank = replica x positions + position.
};

/// What is asked of a plan. What is left at its default is chosen: by costs where there is a profile,
/// else one stage, one replica.
struct PlanOptions {
  BatchLayout batch{.global_batch = 32, .microbatch = 8, .lanes = 1};
  /// That each rank computes with (torch's intra-op threads), each on a core of its own where there are as many. Bits of
  /// some operators depend on it: the same for every layout, but other ones than with another number.
  int threads = 1;
  int stages = 0;           ///< Pipeline stages; 0: the best number.
  int stages_per_rank = 0;  ///< Virtual stages; 0: as few as the schedule can have.
  int replicas = 0;         ///< Copies of the pipeline; 0: the best number.
  Placement placement = Placement::kSpread;  ///< Decides speed alone.
  Recompute recompute = Recompute::kAuto;    ///< Decides speed and memory.
  Offload offload = Offload::kNone;          ///< Decides speed and memory.
  /// Each replica keeps the optimizer's state of a part of the parameters, updates that, and the values are brought
  /// together: less memory, about the same time, the same bits. Not with Adafactor or an optimizer of your own.
  bool shard_state = false;
  /// As shard_state, which it implies; and each replica keeps its part of the parameters' values and gradients alone.
  /// A stage's values are whole while it runs, and while the stage before it does: for several stages a rank. Parameters
  /// with several uses stay whole.
  bool shard_parameters = false;
  /// `simple`, `interleaved`, `zero_bubble`, with one stage a rank `zero_bubble_h2`, with two `v_half` or `v_min`; empty: the
  /// best.
  std::string schedule;
  /// A schedule of one's own, which the schedule checker passes; without a profile only, instead of `schedule`.
  std::filesystem::path schedule_file;
  /// Most microbatches whose activations a rank holds at once, of all its stages together as if each were whole: later
  /// forwards wait for backwards. 0: as many as the schedule takes. Decides speed and memory.
  int active_microbatches = 0;
  std::vector<std::string> cuts;    ///< Nodes, by name or position, at which a stage begins.
  std::vector<std::string> copies;  ///< Nodes that run once per consumer; without a profile only.

  // With a profile.
  Objective objective = Objective::kSpeed;
  double max_slowdown = 1.25;            ///< Of kMemory.
  std::int64_t device_memory_bytes = 0;  ///< Of each rank; 0: what the topology says.
  /// By the name of a node or of a module, or a pattern (`*` any characters, `?` one, `[ab]`): the stage that runs all these
  /// nodes.
  std::map<std::string, int> stage_of;
  Balance balance = Balance::kSearch;
  bool may_copy = false;  ///< Cheap shared nodes may run once per consumer: other bits.
  bool may_reorder =
      true;               ///< Nodes may run in another order than the recorded one: the same bits.
  bool may_idle = false;  ///< Ranks may be left out where that is faster.
  /// Stages may have different numbers of ranks, some of which then run several replicas, where that is faster: the same bits.
  /// Where `replicas` is 0 and the objective speed.
  bool may_join = false;
};

/// A model's forward pass as data: operators, values, parameters. Immutable; copies share.
class Graph {
 public:
  explicit Graph(std::shared_ptr<const graph::Graph> value);  ///< Of the library's own.

  /// A file form of docs/formats.md. Errors kIo, kCorruptData, naming file and field.
  static Graph load(const std::filesystem::path& path);

  /// Returns the file's sha256. Errors kIo, kResourceExhausted.
  std::string save(const std::filesystem::path& path) const;

  std::string show() const;    ///< Tables, for people.
  std::string sha256() const;  ///< Of what it computes; plans and profiles name it.

  std::vector<std::string> node_names() const;  ///< In the order in which they run.
  std::vector<int> allowed_cuts() const;        ///< Positions at which a stage may begin.
  std::vector<std::string> parameter_names() const;
  /// Position of the first node that takes each parameter; -1: none.
  std::vector<int> first_uses() const;
  std::vector<std::string> buffer_names() const;
  std::vector<std::string> tied_parameters() const;    ///< That several nodes use.
  std::vector<std::string> unused_parameters() const;  ///< Never trained: no loss depends on them.
  std::vector<std::string> random_nodes() const;       ///< That draw random numbers.
  std::int64_t microbatch() const;                     ///< The only one that it holds for; 0: any.

  const graph::Graph& value() const { return *value_; }

 private:
  std::shared_ptr<const graph::Graph> value_;
};

/// What a graph's nodes and the links between ranks cost, measured. Immutable; copies share.
class Profile {
 public:
  explicit Profile(std::shared_ptr<const profile::Profile> value);
  static Profile load(const std::filesystem::path& path);

  /// The same, of this graph: kInvalidArgument where it is of another.
  static Profile load(const std::filesystem::path& path, const Graph& graph);
  std::string save(const std::filesystem::path& path) const;
  std::string show(const Graph& graph) const;

  std::string graph_sha256() const;
  std::int64_t microbatch() const;  ///< That all costs are for.
  int num_distinct_nodes() const;   ///< That were measured; nodes that do the same share a cost.
  double forward_ms() const;        ///< Of a microbatch through the whole graph.
  double backward_ms() const;

  const profile::Profile& value() const { return *value_; }

 private:
  std::shared_ptr<const profile::Profile> value_;
};

/// The machines of a run and where each rank is. Immutable; copies share.
class Topology {
 public:
  explicit Topology(std::shared_ptr<const topology::Topology> value);
  static Topology load(const std::filesystem::path& path);
  std::string save(const std::filesystem::path& path) const;
  std::string show() const;

  int num_hosts() const;
  int num_ranks() const;
  std::int64_t memory_bytes(int rank) const;  ///< What the rank may use.

  const topology::Topology& value() const { return *value_; }

 private:
  std::shared_ptr<const topology::Topology> value_;
};

/// Peak memory of each rank, by kind.
using PeakBytes = std::vector<std::map<std::string, std::int64_t>>;

/// What a step of a plan is expected to take.
struct Prediction {
  double step_ms = 0;
  double lower_bound_ms = 0;
  PeakBytes peak_bytes;             ///< What no order of events exceeds.
  std::vector<std::string> limits;  ///< Per stage, what limits it.
  /// By rank, with messages as in the step that was played: what to compare with a measured peak.
  std::vector<std::int64_t> expected_peak_bytes = {};
  bool operator==(const Prediction&) const = default;
};

/// The decision how a graph is trained. Immutable; copies share.
class Plan {
 public:
  explicit Plan(std::shared_ptr<const layout::Plan> value, std::string origin = "the plan");

  /// kCorruptData, naming file and field. Whether it fits a graph is found where it is used.
  static Plan load(const std::filesystem::path& path);

  /// The same, for this graph: kInvalidArgument where it does not fit.
  static Plan load(const std::filesystem::path& path, const Graph& graph);
  std::string save(const std::filesystem::path& path) const;
  std::string show(const Graph& graph) const;

  std::string graph_sha256() const;
  const BatchLayout& batch() const;
  int num_stages() const;
  int num_replicas() const;
  int num_ranks() const;
  std::vector<int> stage_begins() const;  ///< Position of each stage's first node.
  const std::string& schedule() const;
  std::optional<Prediction> prediction() const;  ///< Nothing where no profile was there.

  const layout::Plan& value() const { return *value_; }
  const std::string& origin() const { return origin_; }  ///< For messages: the file's name.

 private:
  std::shared_ptr<const layout::Plan> value_;
  std::string origin_;
};

/// A plan made without a profile: stages of about as many nodes each, or as `cuts` says.
///
/// Errors   kInvalidArgument where the graph may not be cut so, or batch, lanes and replicas do not
///          divide each other.
Plan make_plan(const Graph& graph, const PlanOptions& options);

/// The best plan by measured costs, and why, for people.
struct Decision {
  Plan plan;
  std::string text;
};

/// Errors   kInvalidArgument where the profile is of another graph, where nothing fits into memory
///          (what the nearest misses), or as above.
/// Cost     seconds for some thousand nodes; the same answer each time.
Decision make_plan(const Graph& graph, const Profile& profile, const Topology& topology,
                   const PlanOptions& options, const TrainingOptions& training = {});

/// Plans of which none is beaten by another in both step and peak, the fastest first.
struct Front {
  std::vector<Plan> plans;
  std::string text;  ///< As a table and a picture, for people.
};

/// options    what they fix is kept; 0, auto and empty are varied, and state and parameters are shared among replicas too
///            where the optimizer can. `objective` and `max_slowdown` mean nothing.
/// Errors     those of `make_plan` where there is no plan.
/// Cost       some 10 plans for each combination of replicas, stages on a rank and ways to shard.
Front make_front(const Graph& graph, const Profile& profile, const Topology& topology,
                 const PlanOptions& options, const TrainingOptions& training = {});

/// A step of the plan, played through.
struct SimulatedStep {
  double step_ms = 0;
  double lower_bound_ms = 0;    ///< Of this plan.
  std::vector<double> busy_ms;  ///< By rank.
  std::int64_t peak_bytes = 0;  ///< Of the rank with most.
  std::string text;             ///< Tables, the order of microbatches, a picture.
  std::string timeline;         ///< A Chrome trace: the text of a file for ui.perfetto.dev.
};

SimulatedStep simulate_step(const Plan& plan, const Graph& graph, const Profile& profile,
                            const Topology& topology, const TrainingOptions& training = {});

/// A step in which one thing is changed: links twice as fast, another schedule, a host more.
struct ChangedStep {
  std::string change;
  double step_ms = 0;
  double us_per_sample = 0;
  std::int64_t peak_bytes = 0;  ///< Of the rank with most.
};

struct ChangedSteps {
  ChangedStep now;
  std::vector<ChangedStep> changes;  ///< Those with least time per sample first.
  std::string text;                  ///< As a table, for people.
};

/// What would make the plan's steps faster.
///
/// timeline   that a run wrote: its measured step is played, with what actions took there. Empty: what the profile says.
/// Errors     kInvalidArgument where plan, profile and topology do not fit, or the file has no measured step; kIo,
///            kCorruptData of the file.
ChangedSteps explain_step(const Plan& plan, const Graph& graph, const Profile& profile,
                          const Topology& topology, const TrainingOptions& training = {},
                          const std::filesystem::path& timeline = {});

}  // namespace trireme
