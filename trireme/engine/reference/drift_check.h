#pragma once

#include <cstdint>

#include "trireme/base/log.h"
#include "trireme/engine/record/recording.h"

namespace trireme::reference {

/// Records the model that a rank trains again, the object itself, and compares.
///
/// Weights that only other stages hold, or that are in shards, are lent to it as small numbers; where the machine has not enough
/// memory for these, a line is logged and nothing is checked. Does not count towards the peak.
///
/// recorded   of the model, without copies.
/// Errors     those of record::check_drift.
void check_drift_of_rank(const record::Recording& recorded, const Model& model,
                         const record::BatchMaker& make_batch, std::int64_t step,
                         const Logger& logger);

}  // namespace trireme::reference
