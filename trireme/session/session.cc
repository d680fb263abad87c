#include "trireme/session.h"

#include <memory>
#include <utility>

#include "trireme/session/session_implementation.h"

namespace trireme {

Session::Session(World& world, const MakeWorkload& make, SessionOptions options)
    : state_(Implementation::on_all_ranks(world.value(), [&] {
        return std::make_unique<Implementation>(world, make, std::move(options));
      })) {}

Session::~Session() = default;

SessionEnd Session::run() {
  state_->require_live();
  state_->require_num_steps();
  state_->require_step();
  return Implementation::on_all_ranks(state_->world(), [&] { return state_->run(); });
}

StepReport Session::step() {
  state_->require_live();
  state_->require_step();
  return Implementation::on_all_ranks(state_->world(), [&] { return state_->step(); });
}

StepReport Session::run_step() {
  state_->require_live();
  state_->require_step();
  return Implementation::on_all_ranks(state_->world(), [&] { return state_->run_step(); });
}

StepReport Session::backward() {
  state_->require_live();
  state_->halves().require_backward();
  return Implementation::on_all_ranks(state_->world(), [&] { return state_->backward(); });
}

void Session::update() {
  state_->require_live();
  state_->halves().require_update();
  Implementation::on_all_ranks(state_->world(), [&] { state_->update(); });
}

std::map<std::string, at::Tensor> Session::gradients() const {
  return state_->halves().gradients();
}

StepLosses Session::evaluate() {
  state_->require_live();
  state_->require_evaluation();
  return Implementation::on_all_ranks(state_->world(), [&] { return state_->evaluate(); });
}

RecordedEvaluation Session::record_evaluation(const MakeWorkload& make) {
  state_->require_live();
  state_->require_ranks();
  return Implementation::on_all_ranks(state_->world(),
                                      [&] { return state_->record_evaluation(make); });
}

Evaluated Session::evaluate(const RecordedEvaluation& recorded) {
  state_->require_live();
  state_->require_ranks();
  return Implementation::on_all_ranks(state_->world(), [&] { return state_->evaluate(*recorded); });
}

void Session::save() {
  state_->require_live();
  state_->require_folder();
  Implementation::on_all_ranks(state_->world(), [&] { state_->save(); });
}

void Session::resume(const std::string& checkpoint) {
  state_->require_live();
  state_->require_may_resume(
      "a session resumes from another checkpoint before its first step, without `serial` and "
      "without a run's folder (which resumes by `run.resume`)");
  Implementation::on_all_ranks(state_->world(), [&] { state_->resume(checkpoint); });
}

std::int64_t Session::follow(const std::string& run) {
  state_->require_live();
  state_->require_evaluation();
  state_->require_may_resume(
      "a session follows a run before its first step, without `serial` and without a run's folder "
      "of its own");
  return Implementation::on_all_ranks(state_->world(), [&] { return state_->follow(run); });
}

SessionEnd Session::finish() {
  state_->require_live();
  return Implementation::on_all_ranks(state_->world(), [&] { return state_->finish(); });
}

std::map<std::string, at::Tensor> Session::weights() {
  return Implementation::on_all_ranks(state_->world(), [&] { return state_->weights(); });
}

void Session::save_weights(const std::string& path) {
  Implementation::on_all_ranks(state_->world(), [&] { state_->save_weights(path); });
}

std::string Session::examples() {
  state_->require_end();
  return Implementation::on_all_ranks(state_->world(), [&] { return state_->examples(); });
}

void Session::save_timeline(const std::string& path) {
  state_->require_timeline();
  Implementation::on_all_ranks(state_->world(), [&] { state_->save_timeline(path); });
}

bool Session::stops() const { return state_->stops(); }
void Session::request_stop() { state_->asks_to_stop = true; }
void Session::request_save() { state_->asks_to_save = true; }
std::int64_t Session::next_step() const { return state_->next_step(); }
std::optional<std::int64_t> Session::resumed_from() const { return state_->resumed_from(); }
const Plan& Session::plan() const { return state_->public_plan(); }
const Graph& Session::graph() const { return state_->public_graph(); }

}  // namespace trireme
