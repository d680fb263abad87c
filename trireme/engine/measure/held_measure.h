#pragma once

#include <optional>

#include "trireme/engine/measure/repeats.h"
#include "trireme/engine/measure/subject.h"
#include "trireme/plan/profile/profile.h"

namespace trireme::measure {

/// How much longer forward and backward of the whole graph take where several microbatches go
/// forward before the first goes back: medians over repeats and ranks, in turns with one alone.
///
/// As many are held as fill 256 MiB, 2 to 8; nothing where one fills that or keeps nothing.
/// Counts live bytes of the process on the first rank, as measure_memory does.
///
/// options   of the repeats: one is a microbatch alone and those that are held.
/// Buffers are left as they were. Blocks; every rank calls it. Cost: memory of those microbatches.
std::optional<profile::HeldTimes> measure_held(const Subject& subject,
                                               const RepeatOptions& options);

}  // namespace trireme::measure
