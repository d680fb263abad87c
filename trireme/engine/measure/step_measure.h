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
/// gradient into a lane (kernels::fold), a copy of a boundary value. Measured on buffers of
/// 1 Mi elements, which are more than a core's cache holds beside their state.
///
/// Times are medians over `ranks`, all busy with the same.
profile::StepCosts measure_step(const UpdateFunction& update, const RepeatOptions& options,
                                const BusyRanks& ranks);

}  // namespace trireme::measure
