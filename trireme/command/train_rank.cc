#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "trireme/base/error.h"
#include "trireme/base/files.h"
#include "trireme/command/ending.h"
#include "trireme/command/forecasts.h"
#include "trireme/command/run_session.h"
#include "trireme/command/self_planner.h"
#include "trireme/command/train.h"
#include "trireme/command/training_requests.h"
#include "trireme/engine/memory/block_allocator.h"
#include "trireme/engine/memory/resident.h"
#include "trireme/engine/record/state_guard.h"
#include "trireme/engine/train/evaluate_ranks.h"
#include "trireme/engine/train/first_step_check.h"
#include "trireme/engine/train/gather_state.h"
#include "trireme/engine/train/give_state.h"
#include "trireme/engine/train/measured_timeline.h"
#include "trireme/engine/train/memory_check.h"
#include "trireme/engine/train/telling_others.h"
#include "trireme/plan/graph/bytes.h"
#include "trireme/plan/graph/uses.h"
#include "trireme/plan/layout/json.h"
#include "trireme/plan/profile/json.h"
#include "trireme/plan/simulate/predicted_timeline.h"
#include "trireme/plan/timeline/json.h"
#include "trireme/plan/topology/json.h"

namespace trireme::command {
namespace {

/// A number of every rank, by rank.
std::vector<std::int64_t> of_ranks(const collectives::World& world, std::int64_t mine,
                                   const char* what) {
  std::vector<std::int64_t> result;
  for (const std::string& text : collectives::gather(world, std::to_string(mine), what)) {
    result.push_back(std::stoll(text));
  }
  return result;
}

std::int64_t largest(const std::vector<std::int64_t>& numbers) {
  return *std::max_element(numbers.begin(), numbers.end());
}

/// What ranks must have in common: else one would wait for what another does not do.
std::string shared_text(const TrainOptions& options, int world_size) {
  const RunOptions& run = options.run;
  return train::to_text(options.session) +
         fmt::format(
             "steps {}\nsave {}\ntimeline {}\nrun {}\nplan {}\ncheckpoint_every {}\n"
             "evaluate_every {}\nno_first_step_check {}\n",
             options.report.num_steps, !options.save.empty(), !options.timeline.empty(), run.folder,
             options.plans_itself(world_size) ? "measured" : "given", run.checkpoint_every,
             run.evaluate_every, options.no_first_step_check);
}

std::int64_t parameter_bytes(const graph::Graph& graph) {
  std::int64_t bytes = 0;
  for (const graph::Parameter& parameter : graph.parameters) {
    bytes += graph::bytes_at(graph.values[parameter.value], 0);
  }
  return bytes;
}

/// Said, not refused: a toy may have fewer.
void check_samples(const collectives::World& world, const Workload& workload,
                   const layout::Plan& plan) {
  const std::int64_t samples = workload.training->num_samples();
  if (world.rank() != 0 || samples >= plan.batch.global_batch) return;
  world.watch.logger.warning(
      fmt::format("the data has {} samples, fewer than a batch of {}: a step meets some of them "
                  "several times",
                  samples, plan.batch.global_batch));
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

/// A rank's training from plan to ending.
class RankTraining {
 public:
  RankTraining(const TrainOptions& options, const Context& context, const collectives::World& world)
      : options_(options), context_(context), world_(world) {
    if (world.rank() == 0) check_outputs(options);
    collectives::require_same(world, shared_text(options, world.size()), "training options");
    if (!options.run.folder.empty()) run_.emplace(options, context, world);
    say("preparing data, recording the model");
    training_.emplace(context, options.plan.microbatch());
    if (world.rank() == 0) warn_of_unused(world, training_->recorded.graph);
    plan_ = decide();
    collectives::require_same(world, layout::plan_sha256(plan_), "plan or model");
    train::check_memory(world, plan_);
    check_samples(world, training_->workload, plan_);
    if (training_->workload.evaluation) {
      evaluation_ =
          record_model(context, training_->workload, graph::Mode::kEval, plan_.batch.microbatch);
    }
    check_first_step();
    session_ = std::make_unique<train::RankSession>(world, training_->workload, training_->recorded,
                                                    plan_, options.session);
    if (evaluation_) {
      train::check_evaluation(*session_, training_->workload, *evaluation_);
    }
    if (run_) run_->begin(*training_, *session_);
    predict();
  }

  void run() {
    start_report();
    memory::reset_peak();
    if (options_.keeps_something()) requests_.emplace(world_);
    if (run_ && evaluation_ && !run_->resumed_from()) evaluate_if_due();
    while (session_->next_step() < options_.report.num_steps && stop_signal_ == 0) {
      const train::StepReport step = session_->step();
      step_seconds_ += step.seconds;
      wait_seconds_ += step.data_wait_seconds;
      compute_seconds_ += step.compute_seconds;
      ++num_steps_;
      if (report_) report_->add(step);
      take_requests();
      if (!run_) continue;
      // First: a resumed run does it no more.
      if (evaluation_ && stop_signal_ == 0) evaluate_if_due();
      run_->after_step(*session_);
    }
    if (report_) report_->finish();
  }

  void end(const std::function<void()>& leave) {
    session_->check_finite();
    if (run_) run_->save_now(*session_);  // before all that may fail
    session_->check_replicas();
    take_requests();
    if (run_) requests_.reset();  // from here on a signal ends the process: nothing would be lost
    const Segment::Measured measured = measure_run();
    Ending ending;
    ending.add_measured(measured, plan_);
    const auto timelines = write_timelines();
    if (run_) {
      run_->end(measured, timelines, session_->next_step());
      ending.add_file("checkpoint",
                      run_->folder().checkpoints().published(session_->next_step()).string());
    }
    add_stop(ending);
    const bool has_time = stop_signal_ == 0;
    if (evaluation_ && has_time) ending.add_evaluation(evaluate());
    const bool shows = has_time && shows_examples();
    train::Tensors weights;
    if (shows || !options_.save.empty()) {
      weights = train::gather_state(world_, training_->workload, *session_);
    }
    session_.reset();
    leave();
    if (!report_) return;
    if (!options_.save.empty()) ending.add_weights(weights, options_.save);
    if (shows) show_examples(weights);
    ending.print(context_);
  }

 private:
  void say(const std::string& phase) const {
    if (world_.rank() == 0) say_phase(phase, context_.json);
  }

  /// Whoever asks for an end may not wait long: what was learnt is saved before anything else.
  void take_requests() {
    if (!requests_) return;
    const TrainingRequest request = requests_->agree();
    stop_signal_ = request.stop_signal;
    if (run_ && (request.saves || stop_signal_ != 0)) run_->save_now(*session_);
  }

  void add_stop(Ending& ending) const {
    const std::int64_t done = session_->next_step();
    if (stop_signal_ == 0 || done == options_.report.num_steps) return;
    ending.add_stop({.done = done,
                     .num_steps = options_.report.num_steps,
                     .reason = signal_text(stop_signal_),
                     .can_resume = run_.has_value()});
  }

  /// On rank 0, which still has the whole model; the others wait for its verdict, and no longer than
  /// a run of it takes.
  void check_first_step() {
    if (options_.no_first_step_check) return;
    const std::string what = "first step's check";
    const auto tell = [&](const char* text) { return collectives::from_first(world_, text, what); };
    if (world_.rank() != 0) {
      while (tell("").empty()) continue;
      return;
    }
    train::telling_others(world_, 0, [&] {
      train::check_first_step(training_->workload, training_->recorded, plan_,
                              {.seed = options_.session.seed, .after_run = [&] { tell(""); }},
                              world_.watch.logger);
    });
    tell("done");
  }

  layout::Plan decide() {
    if (!options_.plans_itself(world_.size())) {
      return options_.plan.plan_for(training_->recorded.graph);
    }
    if (run_) run_->check_goes_on(*training_);
    say("no plan is given: the ranks measure and plan");
    planner_.emplace(options_, context_, world_, options_.run.folder);
    if (!planner_->has_measurement(training_->recorded.graph)) {
      const MeasureOptions wanted{.microbatch = options_.plan.batch.microbatch,
                                  .device_memory_bytes = options_.run.device_memory_bytes,
                                  .seed = context_.seed,
                                  .optimizer = options_.session.optimizer};
      planner_->keep(measure(training_->workload, training_->recorded, wanted, &world_));
      training_.emplace(context_, options_.plan.microbatch());  // as it was before
    }
    return planner_->decide(training_->recorded.graph, run_ ? run_->copies() : PlannedCopies());
  }

  /// What the plan was made from; nothing where that is not known.
  std::optional<Measurement> measurement_of_plan() const {
    if (planner_) return planner_->measurement();
    if (options_.profile.empty()) return std::nullopt;
    Measurement named{profile::load(options_.profile), topology::load(options_.topology)};
    if (plan_.profile_sha256 && *plan_.profile_sha256 != profile::profile_sha256(named.profile)) {
      throw Error(ErrorKind::kInvalidArgument,
                  options_.profile + " is not the profile that the plan was made from");
    }
    return named;
  }

  /// What is expected of a step; on rank 0.
  void predict() {
    if (world_.rank() != 0) return;
    const std::optional<Measurement> measured = measurement_of_plan();
    if (!measured) return;
    const simulate::Forecast step = forecast(session_->recording().graph, plan_, measured->profile,
                                             measured->topology, options_.session.optimizer);
    predicted_ = simulate::predicted_timeline(step.program, step.simulation);
    for (const simulate::StageCost& stage : step.stages) {
      predicted_compute_seconds_ += 1e-6 * (stage.forward_us + stage.backward_us()) *
                                    static_cast<double>(plan_.batch.num_microbatches());
    }
  }

  /// How much longer than in the profile forwards and backwards of all ranks took, on rank 0; nothing
  /// where that is not known.
  std::optional<double> compute_over_profile() const {
    double seconds = 0;
    for (const std::int64_t us :
         of_ranks(world_, static_cast<std::int64_t>(1e6 * compute_seconds_), "compute")) {
      seconds += 1e-6 * static_cast<double>(us);
    }
    if (num_steps_ == 0 || predicted_compute_seconds_ <= 0) return std::nullopt;
    return seconds / static_cast<double>(num_steps_) / predicted_compute_seconds_;
  }

  void start_report() {
    if (world_.rank() != 0) return;
    ReportOptions options = options_.report;
    options.columns = terminal_columns();
    options.first_step = session_->next_step();
    if (run_ && options.metrics_file.empty()) {
      options.metrics_file = run_->folder().metrics().string();
    }
    if (!options.metrics_file.empty() && options.first_step > 0) {
      cut_half_line(options.metrics_file);
    }
    if (run_ && run_->resumed_from()) {
      say(fmt::format("resuming from step {} of {}", options.first_step, options_.run.folder));
    }
    if (!options_.keeps_something()) say("the weights are not kept: give --run or --save");
    report_.emplace(plan_, options_.session.optimizer, options);
  }

  program::StepLosses evaluate() {
    const auto losses = train::evaluate_ranks(world_, training_->workload, *session_, *evaluation_);
    if (report_) report_->write_evaluation(session_->next_step(), losses);
    return losses;
  }

  void evaluate_if_due() {
    if (!run_->is_evaluation_due(*session_)) return;
    const auto losses = evaluate();
    if (report_) report_->print_evaluation(session_->next_step(), losses);
  }

  Segment::Measured measure_run() const {
    const auto waited = static_cast<std::int64_t>(1e6 * wait_seconds_);
    const double seconds = std::max(step_seconds_, 1e-9);
    return {.median_step_ms = report_ ? report_->median_step_ms() : 0,
            .data_wait_fraction =
                1e-6 * static_cast<double>(largest(of_ranks(world_, waited, "waits"))) / seconds,
            .peak_bytes =
                of_ranks(world_, memory::memory_use().peak_bytes - training_->data_bytes, "peaks"),
            .resident_peak_bytes = of_ranks(world_, memory::resident_peak_bytes(), "peaks"),
            .compute_over_profile = compute_over_profile()};
  }

  std::vector<timeline::Timeline> write_timelines() const {
    const bool has_steps = step_seconds_ > 0;
    if ((options_.timeline.empty() && !run_) || !has_steps) return {};
    std::vector<timeline::Timeline> timelines;
    if (predicted_) timelines.push_back(*predicted_);
    timelines.push_back(train::measured_timeline(world_, *session_));
    if (report_ && !options_.timeline.empty()) timeline::save(timelines, options_.timeline);
    return timelines;
  }

  /// Examples need all weights on rank 0: only where it has room for them. The same on all ranks.
  bool shows_examples() const {
    if (!run_ || !training_->workload.examples) return false;
    const std::int64_t bytes = parameter_bytes(training_->recorded.graph);
    const bool fits = bytes < memory::available_bytes() / 2;
    if (world_.rank() == 0 && !fits) {
      world_.watch.logger.info("no examples: the whole model does not fit here");
    }
    return collectives::from_first(world_, fits ? "yes" : "", "examples") == "yes";
  }

  void show_examples(const train::Tensors& weights) const {
    train::give_state(training_->workload.model, weights);
    const record::ModeGuard in_mode(training_->workload.model, graph::Mode::kEval);
    const std::string text = training_->workload.examples();
    write_file_atomically(run_->folder().path("examples.txt"), text);
    if (!context_.json) fmt::print("{}\n", text);
  }

  const TrainOptions& options_;
  const Context& context_;
  const collectives::World& world_;
  std::optional<RunSession> run_;
  std::optional<Training> training_;
  std::optional<SelfPlanner> planner_;  ///< Where no plan was given.
  layout::Plan plan_;
  std::optional<record::Recording> evaluation_;
  std::unique_ptr<train::RankSession> session_;
  std::optional<timeline::Timeline> predicted_;
  double predicted_compute_seconds_ = 0;  ///< Of a step, all ranks together.
  std::optional<TrainingReport> report_;  ///< On rank 0.
  std::optional<RankRequests> requests_;  ///< While there is something to save.
  int stop_signal_ = 0;                   ///< That asked for an end; the same on all ranks.
  double step_seconds_ = 0;
  double wait_seconds_ = 0;
  double compute_seconds_ = 0;
  std::int64_t num_steps_ = 0;
};

}  // namespace

int train_rank(const TrainOptions& options, const Context& context, const collectives::World& world,
               const std::function<void()>& leave) {
  RankTraining training(options, context, world);
  training.run();
  training.end(leave);
  return 0;
}

}  // namespace trireme::command
