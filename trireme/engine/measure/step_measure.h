#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "trireme/engine/measure/busy_ranks.h"
#include "trireme/engine/measure/repeats.h"
#include "trireme/plan/profile/profile.h"

namespace trireme::measure {

/// Updates a parameter in place, keeping its state from call to call. Flat f32 tensors.
using UpdateFunction = std::function<void(const at::Tensor& value, const at::Tensor& gradient)>;

/// What a rank does outside stages, per element or byte: an update by `update`, the fold of a
/// gradient into a lane (kernels::fold), a copy of a boundary value. As in a step, what was just
/// computed is near and what it is added or copied to is not: gradients of 4 MiB and values of 1 MiB
/// go to 64 MiB that are walked through, an update is of 4 Mi elements.
///
/// Times are medians over `ranks`, all busy with the same. Memory: 100 MiB and the update's state.
profile::StepCosts measure_step(const UpdateFunction& update, const RepeatOptions& options,
                                const BusyRanks& ranks);

}  // namespace trireme::measure
