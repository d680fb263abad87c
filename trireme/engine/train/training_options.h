#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "trireme/engine/optim/optimizer.h"
#include "trireme/engine/program/step_losses.h"

namespace trireme::train {

struct OptimizerOptions {
  std::string name = "adamw";  ///< One of `optimizer_names`.
  double learning_rate = 1e-3;
  std::int64_t warmup_steps = 0;  ///< The rate grows linearly to its full value over these.
  std::string decay = "none";     ///< After the warm-up: `none` or `inverse_sqrt`.
  double momentum = 0.9;          ///< Of sgd and lars.
  double weight_decay = 0.01;
  double clip_norm = 0;  ///< 0: gradients are not clipped.
};

/// What optimizers can be called, for people.
std::string optimizer_names();

/// Errors   kInvalidArgument for an unknown name or decay, and for a number that is negative or not
///          finite, or for a learning rate that f32 cannot hold.
std::unique_ptr<optim::Optimizer> make_optimizer(const OptimizerOptions& options);

/// Bytes of state per f32 parameter element. kInvalidArgument for an unknown name.
std::int64_t optimizer_bytes_per_element(const OptimizerOptions& options);

/// The rate of `step`, from 0: learning_rate x min(1, (step + 1) / warmup_steps), then, with
/// `inverse_sqrt`, learning_rate x sqrt(w / max(w, step + 1)), w = max(warmup_steps, 1).
///
/// Errors   kInvalidArgument for an unknown decay.
/// Source   Vaswani et al., "Attention is all you need", 2017, section 5.3; Raffel et al.
/// 2020, 3.1.2.
double learning_rate_at(const OptimizerOptions& options, std::int64_t step);

/// What replicas make, at the end of a step, of a buffer that each has written for itself.
enum class ReplicaPolicy : std::uint8_t {
  kFirst,    ///< All take that of the first.
  kAverage,  ///< All take the mean.
  kSum,      ///< The changes that the step made on each are added to what was before it.
};

/// By the buffer's name.
using ReplicaPolicies = std::map<std::string, ReplicaPolicy>;

/// `first`, `average`, `sum`.
std::string to_text(ReplicaPolicy policy);

/// From texts `NAME=first`, the name up to the last `=`. kInvalidArgument for any other text and for
/// a name given twice.
ReplicaPolicies parse_replica_policies(const std::vector<std::string>& texts);

struct SessionOptions {
  // Changes results.
  std::uint64_t seed = 0;
  OptimizerOptions optimizer;
  ReplicaPolicies buffers;  ///< Of train::written_buffers, where there are replicas.
  bool tolerant = false;    ///< Takes replicas that do not keep the bits of one.
  // Changes nothing but what is noticed.
  bool allow_nonfinite = false;  ///< Goes on where a loss or a gradient is not finite.
  /// Steps at which the model is recorded again; early and late, since some of it changes rarely.
  std::vector<std::int64_t> drift_check_steps = {1, 10, 100, 1000};
};

bool checks_drift(const SessionOptions& options, std::int64_t step);

/// Whether steps compute the norm of all gradients: where they clip, or end at one that is not
/// finite.
bool needs_norm(const SessionOptions& options);

/// What changes results, by name.
std::map<std::string, std::string> facts_of(const SessionOptions& options);

/// Everything in it as text, a line `name value` each: equal texts train alike.
std::string to_text(const SessionOptions& options);

/// What one step was.
struct StepReport {
  std::int64_t step = 0;  ///< From 0.
  program::StepLosses losses;
  double gradient_norm = 0;  ///< Before clipping; 0 where no step needs it.
  double seconds = 0;
  double data_wait_seconds = 0;  ///< Of these, those in which the rank waited for samples.
  double compute_seconds = 0;    ///< Processor time of this rank's forwards and backwards; 0 where
                                 ///< one process runs all stages.
};

}  // namespace trireme::train
