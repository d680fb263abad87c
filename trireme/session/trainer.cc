#include "trireme/session/trainer.h"

#include <optional>
#include <utility>

#include "trireme/engine/train/evaluate_ranks.h"
#include "trireme/engine/train/finite_check.h"
#include "trireme/engine/train/gathered_state.h"
#include "trireme/engine/train/serial_session.h"
#include "trireme/session/weights_file.h"

namespace trireme::session {
namespace {

class RankTrainer : public Trainer {
 public:
  RankTrainer(const collectives::World& world, const Training& training, const layout::Plan& plan,
              const TrainingOptions& options)
      : world_(world),
        workload_(training.workload),
        session_(world, training.workload, training.recorded, plan, options) {}

  StepReport step() override { return session_.step(); }
  std::int64_t next_step() const override { return session_.next_step(); }
  std::optional<StepLosses> evaluate(const record::Recording& recording,
                                     const std::function<bool()>& stops) override {
    train::RankEvaluation found =
        train::evaluate_ranks(world_, workload_, session_, recording, {.stops = stops});
    evaluated_ = std::move(found.last_part);
    return found.is_stopped ? std::nullopt : std::optional(found.losses);
  }
  train::Tensors weights() override { return train::gather_state(world_, workload_, session_); }
  void check_finite() override { session_.check_finite(); }
  train::RankSession* ranks() override { return &session_; }
  const train::RanProgram* last_evaluation() const override {
    return evaluated_ ? &*evaluated_ : nullptr;
  }

 private:
  const collectives::World& world_;
  const Workload& workload_;
  train::RankSession session_;
  std::optional<train::RanProgram> evaluated_;
};

class SerialTrainer : public Trainer {
 public:
  SerialTrainer(const Training& training, const layout::Plan& plan, const TrainingOptions& options)
      : workload_(training.workload),
        microbatch_(plan.batch.microbatch),
        allows_nonfinite_(options.allow_nonfinite),
        session_(training.workload, training.recorded, plan, options) {}

  StepReport step() override { return session_.step(); }
  std::int64_t next_step() const override { return session_.next_step(); }
  std::optional<StepLosses> evaluate(const record::Recording& recording,
                                     const std::function<bool()>& /*stops*/) override {
    return train::evaluate(workload_, recording, microbatch_, session_.next_step());
  }
  train::Tensors weights() override { return state_of(workload_.model); }
  void check_finite() override {
    if (allows_nonfinite_) return;
    train::require_finite(train::not_finite(session_.store()), session_.next_step() - 1);
  }

 private:
  const Workload& workload_;
  std::int64_t microbatch_;
  bool allows_nonfinite_;
  train::SerialSession session_;
};

}  // namespace

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
