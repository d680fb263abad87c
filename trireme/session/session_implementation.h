#pragma once

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>

#include "trireme/base/files.h"
#include "trireme/engine/memory/process_memory.h"
#include "trireme/engine/program/torch_failure.h"
#include "trireme/engine/record/state_guard.h"
#include "trireme/engine/train/evaluate_ranks.h"
#include "trireme/engine/train/gathered_state.h"
#include "trireme/engine/train/measured_timeline.h"
#include "trireme/error.h"
#include "trireme/plan/schedule/timeline_json.h"
#include "trireme/plan/simulate/predicted_timeline.h"
#include "trireme/session.h"
#include "trireme/session/initial_weights.h"
#include "trireme/session/metrics_file.h"
#include "trireme/session/other_forward.h"
#include "trireme/session/preparation.h"
#include "trireme/session/processors.h"
#include "trireme/session/reader_rank.h"
#include "trireme/session/run_keeper.h"
#include "trireme/session/step_times.h"
#include "trireme/session/trainer.h"
#include "trireme/session/training_requests.h"
#include "trireme/session/weights_file.h"

namespace trireme {

/// In the order of a step it holds: the ranks and the workload; what was decided; what runs steps; what
/// is kept of them.
class Session::Implementation {
 public:
  Implementation(std::shared_ptr<session::TrainingRanks> ranks_that_train, const MakeWorkload& make,
                 SessionOptions options)
      : options_(std::move(options)),
        ranks_that_train_(std::move(ranks_that_train)),
        make_(ranks_that_train_->with_readers(make)),
        world_(ranks_that_train_->world()),
        is_first_(world_.rank() == 0) {
    session::use_threads(session::threads_of(options_.plan, options_.planning));
    session::check_options(options_, world_);
    if (!options_.run.folder.empty()) run_.emplace(options_, world_);
    if (!run_ || !run_->resumed_from()) {
      const auto say = is_first_ ? options_.callbacks.on_phase : nullptr;
      make_ = session::with_weights(make_, options_.initial, say);
    }
    prepared_.emplace(options_, make_, world_, run_ ? &*run_ : nullptr);
    trainer_ = options_.serial
                   ? session::make_serial_trainer(training(), plan(), options_.training)
                   : session::make_rank_trainer(world_, training(), plan(), options_.training);
    if (has_evaluation() && ranks() != nullptr) {
      train::check_evaluation(*ranks(), training().workload, *prepared_->evaluation());
    }
    if (run_) run_->begin(training(), *ranks());
    if (run_ && run_->resumed_from()) {
      say(fmt::format("resuming from step {} of {}", next_step(), options_.run.folder));
    }
    predict();
    const std::string metrics = metrics_path();
    if (!metrics.empty()) check_writable(metrics);
    metrics_.emplace(metrics);
    requests_.emplace(world_, options_.handles_signals);
    memory::reset_peak();
  }

  SessionEnd run() {
    while (next_step() < *options_.num_steps && !stops_) run_step();
    return finish();
  }

  StepReport run_step() {
    if (next_step() == 0 && !resumed_from()) evaluate_if_due();
    StepReport report = advance();
    // First: a resumed run does it no more.
    if (!stops_) evaluate_if_due();
    save_what_is_asked();
    if (run_) run_->after_step(*ranks());
    return report;
  }

  StepReport step() {
    StepReport report = advance();
    save_what_is_asked();
    return report;
  }

  StepReport backward() {
    StepReport report = ranks()->backward();
    times_.add(report);
    write_metrics(report);
    return report;
  }

  void update() {
    ranks()->update();
    take_requests();
    save_what_is_asked();
  }

  StepLosses evaluate() { return *evaluate_unless({}); }

  /// As far as nobody asks for a stop: nothing where somebody does.
  std::optional<StepLosses> evaluate_unless_stopped() {
    return evaluate_unless([this] { return asks_to_stop_now(); });
  }

  RecordedEvaluation record_evaluation(const MakeWorkload& make) {
    return std::make_shared<const session::OtherForward>(
        session::record_other(make, *ranks(), options_, world_));
  }

  Evaluated evaluate(const session::OtherForward& recorded) {
    train::RankEvaluation found = trainer_->evaluate_other(recorded);
    return {std::move(found.losses), std::move(found.microbatch_sums)};
  }

  std::int64_t follow(const std::string& run) {
    const auto stops = [this] { return asks_to_stop_now(); };
    const auto evaluate_checkpoint = [&](const std::filesystem::path& folder) {
      checkpoint::Reader reader(folder, checkpoint::Checksums::kCompare);
      session::require_same_model(reader.index(), training().recorded.graph);
      ranks()->resume(reader);
      return trainer_->evaluate(*prepared_->evaluation(), stops);
    };
    return session::follow(world_, run, evaluate_checkpoint, options_.callbacks.on_evaluation,
                           stops);
  }

  void save() { run_->save_now(*ranks()); }

  void resume(const std::string& folder) {
    collectives::require_same(world_, session::checkpoint_identity(folder), "checkpoint");
    const checkpoint::Facts facts =
        train::training_facts(training().workload, training().recorded, plan(), options_.training);
    session::resume_from({folder, checkpoint::Checksums::kCompare}, facts, options_.training, {},
                         *ranks(), world_.watch.logger);
  }

  SessionEnd finish() {
    trainer_->check_finite();
    await_news();
    if (run_) run_->save_now(*ranks());  // before all that may fail
    if (ranks() != nullptr) ranks()->check_replicas();
    take_requests();
    save_what_is_asked();
    if (run_) requests_->ignore_signals();  // a signal ends the process: nothing would be lost
    SessionEnd end{
        .steps_done = next_step(),
        .measured = times_.measure(world_, training().data_bytes, predicted_compute_seconds_)};
    const bool all_done = options_.num_steps && next_step() >= *options_.num_steps;
    const auto last = run_ ? timelines() : std::vector<schedule::Timeline>();
    const auto end_run = [&] { run_->end(end.measured, last, next_step(), stops_ && !all_done); };
    if (run_ && options_.run.evaluates_elsewhere) end_run();  // who follows leaves the rest to it
    if (has_evaluation() && !stops_) end.evaluation = evaluate_unless_stopped();
    if (stops_ && !all_done)
      end.stopped_by = stop_signal_ != 0 ? session::signal_text(stop_signal_) : stop_reason_;
    if (run_) {
      if (end.evaluation)
        static_cast<void>(run_->after_evaluation(*ranks(), {next_step(), *end.evaluation}));
      // Else the evaluation was stopped: the next start makes it, as after a kill.
      const bool is_whole = !all_done || !has_evaluation() || end.evaluation;
      if (!options_.run.evaluates_elsewhere && is_whole) end_run();
      end.checkpoint = run_->checkpoint_at(next_step());
      end.best_checkpoint = run_->best_checkpoint();
    }
    has_ended_ = true;
    ranks_that_train_->end();
    return end;
  }

  /// On rank 0, as they are: later steps change them. Kept once there are none.
  train::Tensors shared_weights() {
    if (!has_ended_) return trainer_->weights();
    if (!last_weights_) last_weights_ = trainer_->weights();
    return *last_weights_;
  }

  train::Tensors weights() {
    train::Tensors all = shared_weights();
    if (has_ended_) return all;
    for (auto& [name, tensor] : all) tensor = tensor.clone();
    return all;
  }

  void save_weights(const std::string& path) {
    const train::Tensors all = shared_weights();
    if (is_first_) session::save_weights(all, path);
  }

  std::string examples() {
    if (!training().workload.examples || !session::fits_first(training(), world_)) return "";
    const train::Tensors all = weights();
    if (!is_first_) return "";
    train::give_state(training().workload.model, all);
    const record::ModeGuard in_mode(training().workload.model, graph::Mode::kEval);
    return training().workload.examples();
  }

  void save_timeline(const std::string& path) {
    std::vector<schedule::Timeline> all = timelines();
    const train::RanProgram* evaluated = trainer_->last_evaluation();
    if (evaluated != nullptr) all.push_back(train::measured_timeline(world_, *evaluated));
    if (is_first_) schedule::save(all, path);
  }

  // What a caller has to know, the same on all ranks, which go on: kInvalidArgument.
  void require_live() const { require(!has_ended_, "the session has ended; make another one"); }
  void require_end() const {
    require(has_ended_, "examples use the model as it is in the end; call `finish` or `run` first");
  }
  void require_num_steps() const {
    require(options_.num_steps.has_value(),
            "`run` needs SessionOptions::num_steps; or call `step`");
  }
  void require_evaluation() const { require(has_evaluation(), session::kNoEvaluation); }
  void require_folder() const {
    require(run_.has_value(), "checkpoints need a folder: set SessionOptions::run.folder");
  }
  void require_may_resume(const char* otherwise) const {
    require(!options_.serial && times_.empty() && !run_, otherwise);
  }
  train::RankSession& halves() {
    require(!options_.serial,
            "halves of a step are for ranks, which may be one: leave out `serial`");
    return *ranks();
  }
  void require_step() {
    if (ranks() != nullptr) ranks()->require_step();
  }
  void require_timeline() const {
    require(!options_.serial && !times_.empty(),
            "a timeline is of a step that ranks have done; this session has done none");
  }

  void require_ranks() const {
    require(!options_.serial, "evaluations of another forward are for ranks; leave out `serial`");
  }

  const collectives::World& world() const { return world_; }
  bool is_first() const { return is_first_; }
  bool stops() const { return stops_; }
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
  const session::Training& training() const { return prepared_->training(); }
  const layout::Plan& plan() const { return prepared_->plan().value(); }
  bool has_evaluation() const { return prepared_->evaluation() != nullptr; }

  void say(const std::string& phase) const {
    if (is_first_ && options_.callbacks.on_phase) options_.callbacks.on_phase(phase);
  }

  static void require(bool is_met, const char* otherwise) {
    if (!is_met) throw Error(ErrorKind::kInvalidArgument, otherwise);
  }

  void write_metrics(const StepReport& report) {
    metrics_->write_step(report, plan().batch.global_batch, options_.training.optimizer,
                         ranks() == nullptr ? nullptr : &ranks()->last_reading());
  }

  StepReport advance() {
    StepReport report = trainer_->step();
    times_.add(report);
    write_metrics(report);
    if (is_first_ && options_.callbacks.on_step) options_.callbacks.on_step(report);
    take_requests();
    return report;
  }

  /// Of the last step; nothing where there is none of ranks.
  std::vector<schedule::Timeline> timelines() {
    std::vector<schedule::Timeline> result;
    if (times_.empty() || ranks() == nullptr) return result;
    if (predicted_) result.push_back(*predicted_);
    result.push_back(train::measured_timeline(world_, ranks()->last_step()));
    return result;
  }

  /// What is expected of a step; on rank 0.
  void predict() {
    if (!is_first_ || ranks() == nullptr) return;
    const std::optional<session::MeasuredCosts> measured = prepared_->measurement_of_plan();
    if (!measured) return;
    const simulate::Forecast step =
        session::forecast(ranks()->recording().graph, plan(), measured->profile.value(),
                          measured->topology.value(), options_.training);
    predicted_ = simulate::predicted_timeline(step.program, step.simulation);
    predicted_compute_seconds_ = session::compute_seconds(step, plan().batch);
  }

  std::string metrics_path() const {
    if (!is_first_) return "";
    if (!options_.metrics_file.empty() || !run_) return options_.metrics_file;
    return run_->folder().metrics().string();
  }

  void take_requests() {
    const session::TrainingRequest request =
        requests_->agree({.stops = asks_to_stop,
                          .saves = asks_to_save.exchange(false),
                          .has_news = run_ && run_->has_news()});
    stop_signal_ = request.stop_signal;
    stops_ = stops_ || request.stops;
    if (request.has_news) take_news();
    is_asked_to_save_ = is_asked_to_save_ || request.saves || stops_;
  }

  bool asks_to_stop_now() {
    take_requests();
    return stops_;
  }

  void take_news() {
    for (const session::MadeEvaluation& made : run_->take_news()) {
      metrics_->write_evaluation(made.step, made.losses, {});
      conclude(made);
    }
  }

  /// From an evaluation, for the run.
  void conclude(const session::MadeEvaluation& made) {
    stop_for(run_->after_evaluation(*ranks(), made));
    if (is_first_ && options_.callbacks.on_evaluation) {
      options_.callbacks.on_evaluation(made.step, made.losses);
    }
  }

  /// What was begun elsewhere counts, unless the end was asked for: a run that resumes takes it then.
  void await_news() {
    while (run_ && !stops_ && run_->awaits_news()) {
      take_requests();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }

  void save_what_is_asked() {
    if (std::exchange(is_asked_to_save_, false) && run_) run_->save_now(*ranks());
  }

  /// why   empty: not at all. The same on all ranks.
  void stop_for(const std::string& why) {
    if (why.empty()) return;
    stop_reason_ = why;
    stops_ = is_asked_to_save_ = true;
  }

  std::optional<StepLosses> evaluate_unless(const std::function<bool()>& stops) {
    const auto begin = std::chrono::steady_clock::now();
    const std::optional<StepLosses> losses = trainer_->evaluate(*prepared_->evaluation(), stops);
    const auto took = std::chrono::steady_clock::now() - begin;
    if (losses) metrics_->write_evaluation(next_step(), *losses, took);
    return losses;
  }

  void evaluate_if_due() {
    if (!run_ || !has_evaluation() || !run_->is_evaluation_due(*ranks())) return;
    if (const auto losses = evaluate_unless_stopped()) conclude({next_step(), *losses});
  }

  const SessionOptions options_;
  std::shared_ptr<session::TrainingRanks> ranks_that_train_;  // of whoever makes this, too
  MakeWorkload make_;
  const collectives::World& world_;
  const bool is_first_;
  std::optional<session::RunKeeper> run_;
  std::optional<session::Preparation> prepared_;
  std::optional<schedule::Timeline> predicted_;
  double predicted_compute_seconds_ = 0;  ///< Of a step, all ranks together.

  std::unique_ptr<session::Trainer> trainer_;
  std::optional<session::RankRequests> requests_;
  int stop_signal_ = 0;  ///< That asked for an end; the same on all ranks.
  std::string stop_reason_ = "a call";
  bool stops_ = false;
  bool is_asked_to_save_ = false;
  bool has_ended_ = false;

  std::optional<session::MetricsFile> metrics_;  ///< On rank 0.
  session::StepTimes times_;
  std::optional<train::Tensors> last_weights_;
};

}  // namespace trireme
