#include "trireme/session/trainer.h"

#include <optional>
#include <utility>

#include "trireme/engine/train/finite_check.h"
#include "trireme/engine/train/gathered_state.h"
#include "trireme/engine/train/serial_session.h"
#include "trireme/error.h"
#include "trireme/session/weights_file.h"

namespace trireme::session {
namespace {

/// What `evaluate` returns, called while averages stand in the place of weights if so asked.
auto with_averages(auto& session, bool asked, const auto& evaluate) {
  if (asked) session.exchange_averages();
  auto found = evaluate();
  if (asked) session.exchange_averages();
  return found;
}

class RankTrainer : public Trainer {
 public:
  RankTrainer(const collectives::World& world, const Training& training, const layout::Plan& plan,
              const TrainingOptions& options)
      : world_(world),
        workload_(training.workload),
        evaluates_average_(options.evaluate_average),
        session_(world, training.workload, training.recorded, plan, options) {}

  StepReport step() override { return session_.step(); }
  std::int64_t next_step() const override { return session_.next_step(); }
  std::optional<StepLosses> evaluate(const record::Recording& recording,
                                     const std::function<bool()>& stops) override {
    train::RankEvaluation found = evaluate_of(workload_, recording, stops);
    evaluated_ = std::move(found.last_part);
    return found.is_stopped ? std::nullopt : std::optional(found.losses);
  }
  train::RankEvaluation evaluate_other(const OtherForward& other) override {
    return evaluate_of(other.workload, other.recording, {});
  }
  train::Tensors weights() override { return train::gather_state(world_, workload_, session_); }
  void check_finite() override { session_.check_finite(); }
  train::RankSession* ranks() override { return &session_; }
  const train::RanProgram* last_evaluation() const override {
    return evaluated_ ? &*evaluated_ : nullptr;
  }

 private:
  train::RankEvaluation evaluate_of(const Workload& workload, const record::Recording& recording,
                                    const std::function<bool()>& stops) {
    return with_averages(session_, evaluates_average_, [&] {
      return train::evaluate_ranks(world_, workload, session_, recording, {.stops = stops});
    });
  }

  const collectives::World& world_;
  const Workload& workload_;
  bool evaluates_average_;
  train::RankSession session_;
  std::optional<train::RanProgram> evaluated_;
};

class SerialTrainer : public Trainer {
 public:
  SerialTrainer(const Training& training, const layout::Plan& plan, const TrainingOptions& options)
      : workload_(training.workload),
        microbatch_(plan.batch.microbatch),
        reader_threads_(options.reader_threads),
        allows_nonfinite_(options.allow_nonfinite),
        evaluates_average_(options.evaluate_average),
        session_(training.workload, training.recorded, plan, options) {}

  StepReport step() override { return session_.step(); }
  std::int64_t next_step() const override { return session_.next_step(); }
  std::optional<StepLosses> evaluate(const record::Recording& recording,
                                     const std::function<bool()>& /*stops*/) override {
    return with_averages(session_, evaluates_average_, [&] {
      return train::evaluate(workload_, recording, microbatch_, session_.next_step(),
                             reader_threads_);
    });
  }
  train::Tensors weights() override { return state_of(workload_.model); }
  void check_finite() override {
    if (allows_nonfinite_) return;
    train::require_finite(train::not_finite(session_.store()), session_.next_step() - 1);
  }

 private:
  const Workload& workload_;
  std::int64_t microbatch_;
  int reader_threads_;
  bool allows_nonfinite_;
  bool evaluates_average_;
  train::SerialSession session_;
};

}  // namespace

train::RankEvaluation Trainer::evaluate_other(const OtherForward& /*other*/) {
  throw Error(ErrorKind::kInvalidArgument,
              "another forward is evaluated by ranks, which may be one: leave out `serial`");
}

std::unique_ptr<Trainer> make_rank_trainer(const collectives::World& world,
                                           const Training& training, const layout::Plan& plan,
                                           const TrainingOptions& options) {
  return std::make_unique<RankTrainer>(world, training, plan, options);
}

std::unique_ptr<Trainer> make_serial_trainer(const Training& training, const layout::Plan& plan,
                                             const TrainingOptions& options) {
  return std::make_unique<SerialTrainer>(training, plan, options);
}

}  // namespace trireme::session
