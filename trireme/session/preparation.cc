#include "trireme/session/preparation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <tuple>
#include <utility>

#include "trireme/engine/train/first_step_check.h"
#include "trireme/engine/train/memory_check.h"
#include "trireme/engine/train/telling_others.h"
#include "trireme/engine/train/training_options.h"
#include "trireme/error.h"
#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/layout/plan_json.h"
#include "trireme/plan/profile/profile_json.h"

namespace trireme::session {
namespace {

std::string initial_text(const InitialWeights& initial) {
  if (initial.file.empty()) return "";
  std::string text = fmt::format("initial {} partial {}\n", initial.file, initial.partial);
  for (const auto& [from, to] : initial.renamed) text += fmt::format("{} is {}\n", from, to);
  return text;
}

/// What ranks must have in common: else one would wait for what another does not do.
std::string shared_text(const SessionOptions& options, int world_size) {
  const RunOptions& run = options.run;
  return train::to_text(options.training) +
         fmt::format(
             "steps {}\nrun {}\nplan {}\ncheckpoint_every {}\nevaluate_every {}\n"
             "no_first_step_check {}\nhandles_signals {}\ndeferred_init {}\n"
             "keep_best {} {} {} {} {}\n",
             options.num_steps.value_or(-1), run.folder,
             plans_itself(options, world_size) ? "measured" : "given", run.checkpoint_every,
             run.evaluate_every, !options.first_step_check, options.handles_signals,
             options.deferred_init, run.keep_best, run.best_by, run.best_is_most, run.patience,
             run.target.value_or(0)) +
         initial_text(options.initial);
}

void check_average(const TrainingOptions& options) {
  if (!options.evaluate_average || options.optimizer.average_decay > 0) return;
  throw Error(ErrorKind::kInvalidArgument,
              "--evaluate-average wants averages of weights; train with --average-decay 0.999");
}

void check_serial(const SessionOptions& options, int world_size) {
  if (!options.serial) return;
  if (!options.run.folder.empty()) {
    throw Error(ErrorKind::kInvalidArgument,
                "--run is for ranks; --serial is for comparisons with them");
  }
  if (options.training.optimizer.name == train::kOwnOptimizer) {
    throw Error(ErrorKind::kInvalidArgument,
                "an optimizer of one's own is for ranks, which may be one: leave out `serial`");
  }
  if (world_size > 1) {
    throw Error(ErrorKind::kInvalidArgument,
                fmt::format("--serial runs all stages in one process, and here are {} ranks; start "
                            "it as one, or train without --serial",
                            world_size));
  }
}

/// Two names of what was meant to be one tensor: `head->weight = embedding->weight` registers nothing
/// anew, and `head.weight` stays, saved and never trained.
void warn_of_unused(const collectives::World& world, const graph::Graph& graph) {
  const std::vector<std::string> names = graph::unused_parameters(graph);
  if (names.empty()) return;
  world.watch.logger.warning(fmt::format(
      "the loss depends on no use of the parameter{} {}: it is saved and never trained; tie by "
      "register_parameter under both names, or do not register it",
      names.size() == 1 ? "" : "s", fmt::join(names, ", ")));
}

}  // namespace

void check_options(const SessionOptions& options, const collectives::World& world) {
  for (const auto& [name, number, least] :
       {std::tuple("num_steps", options.num_steps.value_or(0), std::int64_t{0}),
        std::tuple("run.checkpoint_every", options.run.checkpoint_every, std::int64_t{0}),
        std::tuple("run.evaluate_every", options.run.evaluate_every, std::int64_t{0}),
        std::tuple("run.keep_best", std::int64_t{options.run.keep_best}, std::int64_t{0}),
        std::tuple("run.patience", std::int64_t{options.run.patience}, std::int64_t{0}),
        std::tuple("run.keep_last", std::int64_t{options.run.keep_last}, std::int64_t{1})}) {
    if (number >= least) continue;
    throw Error(ErrorKind::kInvalidArgument,
                fmt::format("{} is {}; give it at least {}", name, number, least));
  }
  check_serial(options, world.size());
  check_average(options.training);
  collectives::require_same(world, shared_text(options, world.size()), "training options");
}

Preparation::Preparation(const SessionOptions& options, const MakeWorkload& make,
                         const collectives::World& world, const RunKeeper* run)
    : options_(options), make_(make), world_(world), run_(run), is_first_(world.rank() == 0) {
  say("preparing data, recording the model");
  make_training();
  graph_.emplace(std::make_shared<const graph::Graph>(training_->recorded.graph));
  if (is_first_) warn_of_unused(world_, training_->recorded.graph);
  decide();
  if (options_.first_step_check) check_first_step();
}

void Preparation::say(const std::string& phase) const {
  if (is_first_ && options_.callbacks.on_phase) options_.callbacks.on_phase(phase);
}

void Preparation::make_training() {
  training_.emplace(make_, options_.training.seed, microbatch(), options_.batch_sizes,
                    options_.deferred_init, world_);
}

std::int64_t Preparation::microbatch() const {
  return (options_.plan ? options_.plan->batch() : options_.planning.batch).microbatch;
}

/// The plan, and the evaluation's recording that goes with it.
void Preparation::decide() {
  plan_.emplace(std::make_shared<const layout::Plan>(choose_plan()));
  collectives::require_same(world_, layout::plan_sha256(plan_->value()), "plan or model");
  if (!options_.serial) train::check_memory(world_, plan_->value());
  check_samples();
  if (training_->workload.evaluation) {
    evaluation_ =
        record_model({training_->workload.model, training_->workload.training, graph::Mode::kEval,
                      plan_->value().batch.microbatch, options_.batch_sizes},
                     world_);
  }
}

layout::Plan Preparation::choose_plan() {
  const graph::Graph& graph = training_->recorded.graph;
  if (options_.plan) return checked_plan(*options_.plan, graph);
  if (options_.serial || !plans_itself(options_, world_.size())) {
    return plan_by_hand(graph, options_.planning);
  }
  if (run_ != nullptr) run_->check_goes_on(*training_);
  say("no plan is given: the ranks measure and plan");
  planner_.emplace(options_, world_, options_.run.folder);
  if (!planner_->has_measurement(graph)) {
    const MeasureOptions wanted{.microbatch = options_.planning.batch.microbatch,
                                .threads = options_.planning.threads,
                                .device_memory_bytes = options_.planning.device_memory_bytes,
                                .training = {.seed = options_.training.seed,
                                             .optimizer = options_.training.optimizer,
                                             .offload_folder = options_.training.offload_folder},
                                .files = options_.planning.offload != Offload::kNone};
    planner_->keep(measure_recorded(training_->workload, training_->recorded, wanted, &world_));
    make_training();  // as it was before
  }
  return planner_->decide(training_->recorded.graph,
                          run_ != nullptr ? run_->copies() : PlannedCopies());
}

/// Said, not refused: a toy may have fewer.
void Preparation::check_samples() const {
  const std::int64_t samples = training_->workload.training->num_samples();
  if (!is_first_ || samples >= plan_->value().batch.global_batch) return;
  world_.watch.logger.warning(
      fmt::format("the data has {} samples, fewer than a batch of {}: a step meets some of them "
                  "several times",
                  samples, plan_->value().batch.global_batch));
}

/// On rank 0, which still has the whole model; the others wait for its verdict, and no longer than
/// a run of it takes.
void Preparation::check_first_step() const {
  const std::string what = "first step's check";
  const auto tell = [&](const char* text) { return collectives::from_first(world_, text, what); };
  if (!is_first_) {
    while (tell("").empty()) continue;
    return;
  }
  train::telling_others(world_, 0, [&] {
    train::check_first_step(training_->workload, training_->recorded, plan_->value(),
                            {.seed = options_.training.seed,
                             .scratch = train::offload_folder(options_.training),
                             .after_run = [&] { tell(""); }},
                            world_.watch.logger);
  });
  tell("done");
}

/// What the plan was made from; nothing where that is not known.
std::optional<MeasuredCosts> Preparation::measurement_of_plan() const {
  if (planner_) return planner_->measurement();
  if (options_.profile.empty()) return std::nullopt;
  MeasuredCosts named{Profile::load(options_.profile), Topology::load(options_.topology)};
  if (plan_->value().profile_sha256 &&
      *plan_->value().profile_sha256 != profile::profile_sha256(named.profile.value())) {
    throw Error(ErrorKind::kInvalidArgument,
                options_.profile + " is not the profile that the plan was made from");
  }
  return named;
}

}  // namespace trireme::session
