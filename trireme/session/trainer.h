#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "trireme/engine/record/recording.h"
#include "trireme/engine/train/evaluate_ranks.h"
#include "trireme/engine/train/rank_session.h"
#include "trireme/engine/train/training_state.h"
#include "trireme/session/other_forward.h"
#include "trireme/session/training.h"
#include "trireme/wire/collectives/world.h"

namespace trireme::session {

/// What runs the steps of a session: the ranks of a plan, or one process.
class Trainer {
 public:
  virtual ~Trainer() = default;
  virtual StepReport step() = 0;
  virtual std::int64_t next_step() const = 0;

  /// Losses over the evaluation data, of the weights or, where the options say so, of their averages; nothing where it was stopped before its end.
  ///
  /// recording   in eval mode.
  /// stops       as of train::EvaluationOptions; one process does not ask.
  virtual std::optional<StepLosses> evaluate(const record::Recording& recording,
                                             const std::function<bool()>& stops) = 0;

  /// The same of another forward; of ranks alone.
  virtual train::RankEvaluation evaluate_other(const OtherForward& other);

  /// Parameters and buffers on rank 0; elsewhere nothing.
  virtual train::Tensors weights() = 0;

  /// kCorruptData where weights that training has left are not finite, unless that is allowed.
  virtual void check_finite() = 0;

  /// The ranks' session, which checkpoints and timelines are of; null where one process runs all.
  virtual train::RankSession* ranks() { return nullptr; }

  /// What this rank did last in an evaluation; null where ranks have made none.
  virtual const train::RanProgram* last_evaluation() const { return nullptr; }
};

/// training   outlives the trainer, and so does the plan of the serial one.
std::unique_ptr<Trainer> make_rank_trainer(const collectives::World& world,
                                           const Training& training, const layout::Plan& plan,
                                           const TrainingOptions& options);
std::unique_ptr<Trainer> make_serial_trainer(const Training& training, const layout::Plan& plan,
                                             const TrainingOptions& options);

}  // namespace trireme::session
