#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/data/order.h"
#include "trireme/engine/parameters/optimizers/optimizer.h"
#include "trireme/engine/program/stage_captures.h"
#include "trireme/session.h"

namespace trireme::train {

/// The caller's own: it updates parameters between the halves of a step.
inline constexpr std::string_view kOwnOptimizer = "own";

/// In which order training meets the samples.
data::OrderKind order_of(const TrainingOptions& options);

/// What optimizers can be called, for people.
std::string optimizer_names();

/// Errors   kInvalidArgument for an unknown name, a schedule that cannot be (check_schedule), and for a number that is
///          negative or not finite, or for a learning rate that f32 cannot hold.
std::unique_ptr<parameters::Optimizer> make_optimizer(const OptimizerOptions& options);

/// Bytes of state per f32 parameter element. kInvalidArgument for an unknown name.
std::int64_t optimizer_bytes_per_element(const OptimizerOptions& options);

/// `first`, `average`, `sum`.
std::string to_text(ReplicaPolicy policy);

/// From texts `NAME=first`, the name up to the last `=`. kInvalidArgument for any other text and for
/// a name given twice.
ReplicaPolicies parse_replica_policies(const std::vector<std::string>& texts);

/// `gradient_dtype`. kInvalidArgument unless it is f32 or bf16.
Dtype checked_gradient_dtype(const TrainingOptions& options);

bool checks_drift(const TrainingOptions& options, std::int64_t step);

/// Whether steps compute the norm of all gradients: where they clip, or end at one that is not
/// finite.
bool needs_norm(const TrainingOptions& options);

/// What changes results, by name.
std::map<std::string, std::string> facts_of(const TrainingOptions& options);

/// Of stages that are trained.
program::Capture capture_of(const TrainingOptions& options);

/// The folder for what stages that offload keep: the options' own, or the system's for temporary files.
std::filesystem::path offload_folder(const TrainingOptions& options);

/// Everything in it as text, a line `name value` each: equal texts train alike.
std::string to_text(const TrainingOptions& options);

}  // namespace trireme::train
