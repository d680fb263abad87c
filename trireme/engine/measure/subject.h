#pragma once

#include "trireme/engine/measure/busy_ranks.h"
#include "trireme/engine/record/recording.h"

namespace trireme::measure {

/// What is measured, and by whom. Refers to things that outlive it.
struct Subject {
  const record::Recording& recording;  ///< In train mode, as it was recorded.
  const Batch& batch;                  ///< One microbatch, with its step scalars.
  const BusyRanks& ranks;
};

}  // namespace trireme::measure
