#include "trireme/session.h"

#include <memory>
#include <utility>

#include "trireme/session/on_all_ranks.h"
#include "trireme/session/reader_rank.h"
#include "trireme/session/session_implementation.h"

namespace trireme {

using session::on_all_ranks;

class Session::Reader {
 public:
  Reader(World& world, const MakeWorkload& make, const SessionOptions& options)
      : world_(world.value()), rank_(world_, make, options) {}

  void wait() {
    on_all_ranks(world_, [this] { rank_.wait(); });
  }

 private:
  const collectives::World& world_;
  session::ReaderRank rank_;
};

Session::Session(World& world, const MakeWorkload& make, SessionOptions options) {
  std::shared_ptr<session::TrainingRanks> ranks;  // Outlives what is told of a failure.
  on_all_ranks(world.value(), [&] {
    if (session::reads_for_others(options, world.value())) {
      reader_ = std::make_unique<Reader>(world, make, options);
    } else {
      ranks = std::make_shared<session::TrainingRanks>(world.value(), options.reader_ranks);
      // Ranks that others read for only wait for these.
      int& threads = options.training.reader_threads;
      if (threads == 0 && options.reader_ranks > 0) threads = 1;
      state_ = std::make_unique<Implementation>(ranks, make, std::move(options));
    }
  });
}

Session::Implementation& Session::state() const {
  if (state_) return *state_;
  throw Error(ErrorKind::kInvalidArgument,
              "this rank reads samples for those that train (reader_ranks): it calls run or follow "
              "alone, see Session::is_reader");
}

bool Session::is_reader() const { return reader_ != nullptr; }

Session::~Session() = default;

SessionEnd Session::run() {
  if (reader_) {
    reader_->wait();
    return {};
  }
  state().require_live();
  state().require_num_steps();
  state().require_step();
  return on_all_ranks(state().world(), [&] { return state().run(); });
}

StepReport Session::step() {
  state().require_live();
  state().require_step();
  return on_all_ranks(state().world(), [&] { return state().step(); });
}

StepReport Session::run_step() {
  state().require_live();
  state().require_step();
  return on_all_ranks(state().world(), [&] { return state().run_step(); });
}

StepReport Session::backward() {
  state().require_live();
  state().halves().require_backward();
  return on_all_ranks(state().world(), [&] { return state().backward(); });
}

void Session::update() {
  state().require_live();
  state().halves().require_update();
  on_all_ranks(state().world(), [&] { state().update(); });
}

std::map<std::string, at::Tensor> Session::gradients() const {
  return state().halves().gradients();
}

StepLosses Session::evaluate() {
  state().require_live();
  state().require_evaluation();
  return on_all_ranks(state().world(), [&] { return state().evaluate(); });
}

RecordedEvaluation Session::record_evaluation(const MakeWorkload& make) {
  state().require_live();
  state().require_ranks();
  return on_all_ranks(state().world(), [&] { return state().record_evaluation(make); });
}

Evaluated Session::evaluate(const RecordedEvaluation& recorded) {
  state().require_live();
  state().require_ranks();
  return on_all_ranks(state().world(), [&] { return state().evaluate(*recorded); });
}

void Session::save() {
  state().require_live();
  state().require_folder();
  on_all_ranks(state().world(), [&] { state().save(); });
}

void Session::resume(const std::string& checkpoint) {
  state().require_live();
  state().require_may_resume(
      "a session resumes from another checkpoint before its first step, without `serial` and "
      "without a run's folder (which resumes by `run.resume`)");
  on_all_ranks(state().world(), [&] { state().resume(checkpoint); });
}

std::int64_t Session::follow(const std::string& run) {
  if (reader_) {
    reader_->wait();
    return 0;
  }
  state().require_live();
  state().require_evaluation();
  state().require_may_resume(
      "a session follows a run before its first step, without `serial` and without a run's folder "
      "of its own");
  return on_all_ranks(state().world(), [&] { return state().follow(run); });
}

SessionEnd Session::finish() {
  if (reader_) {
    reader_->wait();
    return {};
  }
  state().require_live();
  return on_all_ranks(state().world(), [&] { return state().finish(); });
}

std::map<std::string, at::Tensor> Session::weights() {
  return on_all_ranks(state().world(), [&] { return state().weights(); });
}

void Session::save_weights(const std::string& path) {
  on_all_ranks(state().world(), [&] { state().save_weights(path); });
}

std::string Session::examples() {
  state().require_end();
  return on_all_ranks(state().world(), [&] { return state().examples(); });
}

void Session::save_timeline(const std::string& path) {
  state().require_timeline();
  on_all_ranks(state().world(), [&] { state().save_timeline(path); });
}

bool Session::stops() const { return state().stops(); }
void Session::request_stop() { state().asks_to_stop = true; }
void Session::request_save() { state().asks_to_save = true; }
std::int64_t Session::next_step() const { return state().next_step(); }
std::optional<std::int64_t> Session::resumed_from() const { return state().resumed_from(); }
const Plan& Session::plan() const { return state().public_plan(); }
const Graph& Session::graph() const { return state().public_graph(); }

}  // namespace trireme
