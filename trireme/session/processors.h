#pragma once

#include <optional>

#include "trireme/plan.h"

namespace trireme::session {

/// Torch computes with so many threads from here on, on cores of this rank's own where its launcher gives it such and
/// there are as many for every rank of the host. Bits of some operators depend on the number.
///
/// Errors   kInvalidArgument where there is no such number.
void use_threads(int num_threads);

/// Of the plan, or where none is given, of what is asked of one.
int threads_of(const std::optional<Plan>& plan, const PlanOptions& planning);

}  // namespace trireme::session
