#pragma once

#include <cstdint>
#include <string>

#include "trireme/plan.h"

namespace trireme::train {

/// The rate of `step`, from 0. With w warm-up steps and h steps of hold it is learning_rate x
///
///     (step + 1) / w                              step < w
///     1                                           step < w + h, or without decay
///     sqrt(max(w, 1) / (step + 1))                inverse_sqrt; no hold
///     e + (1 - e) f(t)                            t = (step - w - h) / (decay_steps - w - h), 1 at most
///
/// where e is final_rate and f(t) is 1 - t (linear), (1 - t)^decay_power (polynomial) or (1 + cos(pi t)) / 2 (cosine).
/// With a schedule of the caller's it is learning_rate x that.
///
/// Errors   kInvalidArgument where the schedule of the caller's gives a negative number or none.
/// Source   Vaswani et al., "Attention is all you need", 2017, section 5.3; Loshchilov and Hutter, SGDR, 2017
///          (cosine); Hu et al., MiniCPM, 2024 (hold, then decay).
double learning_rate_at(const OptimizerOptions& options, std::int64_t step);

/// What decays can be called, for people.
std::string decay_names();

/// kInvalidArgument where the schedule cannot be: an unknown decay, one without the steps that it needs.
void check_schedule(const OptimizerOptions& options);

}  // namespace trireme::train
