#pragma once

#include <cstdint>
#include <string>

#include "trireme/engine/parameters/optimizers/optimizer.h"
#include "trireme/engine/parameters/parameter_store.h"
#include "trireme/engine/program/step_losses.h"

namespace trireme::train {

/// `loss 'x' is nan`: the first loss whose mean is NaN or infinite; empty where there is none.
/// Metrics, losses with the coefficient 0, may be.
std::string not_finite(const StepLosses& losses);

/// `the gradient of 'x' is not finite`: the first parameter, by names, whose square norm is NaN or
/// infinite; empty where there is none.
std::string not_finite(const parameters::SquareNorms& square_norms);

/// `the value of 'x' is not finite`: the first parameter owned here, by names; empty where there is
/// none. Cost: one pass over the values.
std::string not_finite(const parameters::ParameterStore& store);

/// Ends a training at a number that is not finite: throws kCorruptData with `problem`, the step and
/// what to do; nothing where `problem` is empty.
///
/// problem   from `not_finite`.
void require_finite(const std::string& problem, std::int64_t step);

}  // namespace trireme::train
