#pragma once

#include <span>
#include <vector>

#include "trireme/engine/measure/measurement.h"
#include "trireme/engine/program/stage_captures.h"

namespace trireme::measure {

/// How fast ranks are that take so long for the same: against the median of all, in steps of 1/20. All are 1 where the
/// slowest takes less than a fifth longer than the fastest: so much the same machine differs from itself.
std::vector<double> speeds_of(std::span<const double> times_us);

/// The speed of each rank in forward and backward of the whole graph, all at once, by the least that they took: what
/// RankPlace::speed is of a profile, whose times are medians over ranks. The same on all ranks.
///
/// Processor time, as all that computes: ranks that share a core are not slower by that. Buffers are left as they were.
/// Cost   that of one of `measure_ranges`.
std::vector<double> rank_speeds(const Subject& subject, const RepeatOptions& options,
                                program::Capture capture);

}  // namespace trireme::measure
