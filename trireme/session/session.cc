#include "trireme/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "trireme/engine/memory/block_allocator.h"
#include "trireme/engine/memory/resident.h"
#include "trireme/engine/memory/torch_settings.h"
#include "trireme/engine/program/torch_failure.h"
#include "trireme/engine/record/state_guard.h"
#include "trireme/engine/train/evaluate_ranks.h"
#include "trireme/engine/train/give_state.h"
#include "trireme/engine/train/measured_timeline.h"
#include "trireme/error.h"
#include "trireme/plan/graph/bytes.h"
#include "trireme/plan/simulate/predicted_timeline.h"
#include "trireme/plan/timeline/json.h"
#include "trireme/session/metrics_file.h"
#include "trireme/session/preparation.h"
#include "trireme/session/run_keeper.h"
#include "trireme/session/trainer.h"
#include "trireme/session/training_requests.h"
#include "trireme/session/weights_file.h"

namespace trireme {
namespace {

using namespace session;  // NOLINT(google-build-using-namespace): what a session is made of

/// A number of every rank, by rank.
std::vector<std::int64_t> of_ranks(const collectives::World& world, std::int64_t mine,
                                   const char* what) {
  std::vector<std::int64_t> result;
  for (const std::string& text : collectives::gather(world, std::to_string(mine), what)) {
    result.push_back(std::stoll(text));
  }
  return result;
}

std::int64_t parameter_bytes(const graph::Graph& graph) {
  std::int64_t bytes = 0;
  for (const graph::Parameter& parameter : graph.parameters) {
    bytes += graph::bytes_at(graph.values[parameter.value], 0);
  }
  return bytes;
}

double median(std::vector<double> numbers) {
  if (numbers.empty()) return 0;
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  std::nth_element(numbers.begin(), middle, numbers.end());
  return *middle;
}

}  // namespace

/// In the order of a step it holds: the ranks and the workload; what was decided; what runs steps; what
/// is kept of them.
class Session::State {
 public:
  State(World& world, const MakeWorkload& make, SessionOptions options)
      : options_(std::move(options)),
        make_(make),
        world_(world.value()),
        is_first_(world_.rank() == 0) {
    memory::apply_torch_settings();
    check_options(options_, world_);
    if (!options_.run.folder.empty()) run_.emplace(options_, world_);
    prepared_.emplace(options_, make_, world_, run_ ? &*run_ : nullptr);
    trainer_ = options_.serial ? make_serial_trainer(training(), plan(), options_.training)
                               : make_rank_trainer(world_, training(), plan(), options_.training);
    if (has_evaluation() && ranks() != nullptr) {
      train::check_evaluation(*ranks(), training().workload, *prepared_->evaluation());
    }
    if (run_) run_->begin(training(), *ranks());
    if (run_ && run_->resumed_from()) {
      say(fmt::format("resuming from step {} of {}", next_step(), options_.run.folder));
    }
    predict();
    open_metrics();
    requests_.emplace(world_, options_.answers_signals);
    memory::reset_peak();
  }

  /// Runs `body`, after which a failure is every rank's.
  template <typename Body>
  static auto on_all_ranks(const collectives::World& world, const Body& body) {
    try {
      return body();
    } catch (const std::exception& failure) {
      Error error = program::error_of(failure);
      world.endpoint.poison(error.add({.rank = world.rank()}));
      throw error;
    }
  }

  SessionEnd run() {
    if (run_ && has_evaluation() && !run_->resumed_from()) evaluate_if_due();
    while (next_step() < options_.num_steps && !stops_) {
      step();
      take_requests();
      if (!run_) continue;
      // First: a resumed run does it no more.
      if (has_evaluation() && !stops_) evaluate_if_due();
      run_->after_step(*ranks());
    }
    return finish();
  }

  StepReport step() {
    require_live();
    StepReport report = trainer_->step();
    seconds_.push_back(report.seconds);
    step_seconds_ += report.seconds;
    wait_seconds_ += report.data_wait_seconds;
    compute_seconds_ += report.compute_seconds;
    if (metrics_) {
      metrics_->write(step_json(report, plan().batch.global_batch, options_.training.optimizer));
    }
    if (is_first_ && options_.callbacks.on_step) options_.callbacks.on_step(report);
    return report;
  }

  /// What a caller has to know: the same on all ranks, which go on.
  void require_evaluation() const {
    require_live();
    if (has_evaluation()) return;
    throw Error(ErrorKind::kInvalidArgument,
                "the workload has no evaluation data; give Workload::evaluation a source");
  }

  StepLosses evaluate() {
    require_evaluation();
    const StepLosses losses = trainer_->evaluate(*prepared_->evaluation());
    if (metrics_) {
      metrics_->write({{"step", next_step()}, {"evaluation", losses_json(losses)}});
    }
    return losses;
  }

  void save() {
    require_live();
    if (!run_) {
      throw Error(ErrorKind::kInvalidArgument,
                  "checkpoints need a folder: set SessionOptions::run.folder");
    }
    run_->save_now(*ranks());
  }

  void resume(const std::string& checkpoint) {
    if (ranks() == nullptr || next_step() > 0 || run_) {
      throw Error(ErrorKind::kInvalidArgument,
                  "a session resumes from another checkpoint before its first step, without "
                  "`serial` and without a run's folder (which resumes by `run.resume`)");
    }
    const checkpoint::Facts facts =
        train::training_facts(training().workload, training().recorded, plan(), options_.training);
    resume_from({checkpoint, checkpoint::Checksums::kCompare}, facts, options_.training, {},
                *ranks(), world_.watch.logger);
  }

  SessionEnd finish() {
    require_live();
    trainer_->check_finite();
    if (run_) run_->save_now(*ranks());  // before all that may fail
    if (ranks() != nullptr) ranks()->check_replicas();
    take_requests();
    if (run_) requests_->ignore_signals();  // a signal ends the process: nothing would be lost
    SessionEnd end{.steps_done = next_step(), .measured = measure_run()};
    const bool is_stopped = stops_ && next_step() < options_.num_steps;
    if (is_stopped) end.stopped_by = stop_signal_ == 0 ? "a call" : signal_text(stop_signal_);
    if (run_) {
      run_->end(end.measured, timelines(), next_step());
      end.checkpoint = run_->folder().checkpoints().published(next_step()).string();
    }
    if (has_evaluation() && !stops_) end.evaluation = evaluate();
    has_ended_ = true;
    return end;
  }

  /// Kept on rank 0: they are asked for one after the other.
  const train::Tensors& weights() {
    if (weights_step_ != next_step()) {
      weights_ = trainer_->weights();
      weights_step_ = next_step();
    }
    return weights_;
  }

  std::string examples() {
    if (!training().workload.examples || !fits_here()) return "";
    const train::Tensors& all = weights();
    if (!is_first_) return "";
    train::give_state(training().workload.model, all);
    const record::ModeGuard in_mode(training().workload.model, graph::Mode::kEval);
    return training().workload.examples();
  }

  const std::vector<timeline::Timeline>& timelines() {
    if (!timelines_.empty() || seconds_.empty() || ranks() == nullptr) return timelines_;
    if (predicted_) timelines_.push_back(*predicted_);
    timelines_.push_back(train::measured_timeline(world_, *ranks()));
    return timelines_;
  }

  const collectives::World& world() const { return world_; }
  bool is_first() const { return is_first_; }
  std::int64_t next_step() const { return trainer_->next_step(); }
  std::optional<std::int64_t> resumed_from() const {
    return run_ ? run_->resumed_from() : std::nullopt;
  }
  const Plan& public_plan() const { return prepared_->plan(); }
  const Graph& public_graph() const { return prepared_->graph(); }

  std::atomic<bool> asks_to_stop{false};
  std::atomic<bool> asks_to_save{false};

 private:
  train::RankSession* ranks() { return trainer_->ranks(); }
  const Training& training() const { return prepared_->training(); }
  const layout::Plan& plan() const { return prepared_->plan().value(); }
  bool has_evaluation() const { return prepared_->evaluation() != nullptr; }

  void say(const std::string& phase) const {
    if (is_first_ && options_.callbacks.on_phase) options_.callbacks.on_phase(phase);
  }

  void require_live() const {
    if (!has_ended_) return;
    throw Error(ErrorKind::kInvalidArgument,
                "the session has ended; make another one for more steps");
  }

  /// What is expected of a step; on rank 0.
  void predict() {
    if (!is_first_ || ranks() == nullptr) return;
    const std::optional<Measurement> measured = prepared_->measurement_of_plan();
    if (!measured) return;
    const simulate::Forecast step =
        forecast(ranks()->recording().graph, plan(), measured->profile.value(),
                 measured->topology.value(), options_.training.optimizer);
    predicted_ = simulate::predicted_timeline(step.program, step.simulation);
    for (const simulate::StageCost& stage : step.stages) {
      predicted_compute_seconds_ += 1e-6 * (stage.forward_us + stage.backward_us()) *
                                    static_cast<double>(plan().batch.num_microbatches());
    }
  }

  void open_metrics() {
    if (!is_first_) return;
    std::string path = options_.metrics_file;
    if (run_ && path.empty()) path = run_->folder().metrics().string();
    if (!path.empty()) metrics_.emplace(path, next_step() > 0);
  }

  /// Whoever asks for an end may not wait long: what was learnt is saved before anything else.
  void take_requests() {
    const TrainingRequest request =
        requests_->agree({.stops = asks_to_stop, .saves = asks_to_save.exchange(false)});
    stop_signal_ = request.stop_signal;
    stops_ = request.stops;
    if (run_ && (request.saves || stops_)) run_->save_now(*ranks());
  }

  void evaluate_if_due() {
    if (!run_->is_evaluation_due(*ranks())) return;
    const StepLosses losses = evaluate();
    if (is_first_ && options_.callbacks.on_evaluation) {
      options_.callbacks.on_evaluation(next_step(), losses);
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
    if (seconds_.empty() || predicted_compute_seconds_ <= 0) return std::nullopt;
    return seconds / static_cast<double>(seconds_.size()) / predicted_compute_seconds_;
  }

  Measured measure_run() const {
    const auto waited = static_cast<std::int64_t>(1e6 * wait_seconds_);
    const double seconds = std::max(step_seconds_, 1e-9);
    const std::vector<std::int64_t> waits = of_ranks(world_, waited, "waits");
    return {.median_step_ms = 1e3 * median(seconds_),
            .data_wait_fraction =
                1e-6 * static_cast<double>(*std::ranges::max_element(waits)) / seconds,
            .peak_bytes =
                of_ranks(world_, memory::memory_use().peak_bytes - training().data_bytes, "peaks"),
            .resident_peak_bytes = of_ranks(world_, memory::resident_peak_bytes(), "peaks"),
            .compute_over_profile = compute_over_profile()};
  }

  /// Examples need all weights on rank 0: only where it has room for them. The same on all ranks.
  bool fits_here() const {
    const std::int64_t bytes = parameter_bytes(training().recorded.graph);
    const bool fits = bytes < memory::available_bytes() / 2;
    if (is_first_ && !fits) {
      world_.watch.logger.info("no examples: the whole model does not fit here");
    }
    return collectives::from_first(world_, fits ? "yes" : "", "examples") == "yes";
  }

  const SessionOptions options_;
  const MakeWorkload make_;
  const collectives::World& world_;
  const bool is_first_;
  std::optional<RunKeeper> run_;
  std::optional<Preparation> prepared_;
  std::optional<timeline::Timeline> predicted_;
  double predicted_compute_seconds_ = 0;  ///< Of a step, all ranks together.

  std::unique_ptr<Trainer> trainer_;
  std::optional<RankRequests> requests_;
  int stop_signal_ = 0;  ///< That asked for an end; the same on all ranks.
  bool stops_ = false;
  bool has_ended_ = false;

  std::optional<MetricsFile> metrics_;  ///< On rank 0.
  std::vector<double> seconds_;         ///< Of each step.
  double step_seconds_ = 0;
  double wait_seconds_ = 0;
  double compute_seconds_ = 0;
  std::vector<timeline::Timeline> timelines_;
  train::Tensors weights_;  ///< Of `weights_step_`.
  std::optional<std::int64_t> weights_step_;
};

Session::Session(World& world, const MakeWorkload& make, SessionOptions options)
    : state_(State::on_all_ranks(world.value(), [&] {
        return std::make_unique<State>(world, make, std::move(options));
      })) {}

Session::~Session() = default;

SessionEnd Session::run() {
  return State::on_all_ranks(state_->world(), [&] { return state_->run(); });
}

StepReport Session::step() {
  return State::on_all_ranks(state_->world(), [&] { return state_->step(); });
}

StepLosses Session::evaluate() {
  state_->require_evaluation();
  return State::on_all_ranks(state_->world(), [&] { return state_->evaluate(); });
}

void Session::save() { state_->save(); }
void Session::resume(const std::string& checkpoint) { state_->resume(checkpoint); }

SessionEnd Session::finish() {
  return State::on_all_ranks(state_->world(), [&] { return state_->finish(); });
}

std::map<std::string, at::Tensor> Session::weights() { return state_->weights(); }

void Session::save_weights(const std::string& path) {
  const train::Tensors& weights = state_->weights();
  if (state_->is_first()) session::save_weights(weights, path);
}

std::string Session::examples() { return state_->examples(); }

void Session::save_timeline(const std::string& path) {
  const std::vector<timeline::Timeline>& timelines = state_->timelines();
  if (state_->is_first() && !timelines.empty()) timeline::save(timelines, path);
}

void Session::request_stop() { state_->asks_to_stop = true; }
void Session::request_save() { state_->asks_to_save = true; }
std::int64_t Session::next_step() const { return state_->next_step(); }
std::optional<std::int64_t> Session::resumed_from() const { return state_->resumed_from(); }
const Plan& Session::plan() const { return state_->public_plan(); }
const Graph& Session::graph() const { return state_->public_graph(); }

}  // namespace trireme
