#pragma once

#include <chrono>
#include <cstdint>

#include "python/backend/rendezvous.h"

namespace trireme::backend {

struct MonitoredBarrier {
  int rank;
  int size;
  std::uint64_t number;               ///< Of those of the group before it.
  std::chrono::milliseconds timeout;  ///< For all ranks to come.
  bool waits_for_all;                 ///< Name all ranks that did not come, not the first alone.
};

/// Waits until all ranks of a group have come, by words at the rendezvous: whoever does not come is
/// named, and the group can be used all the same.
///
///     rank r     says  <number>/here/r,  waits for  <number>/verdict
///     rank 0     waits for all of them, and says the verdict: empty, or who is missing
///
/// Blocks. Errors   kTimeout, on all ranks that came.
void monitored_barrier(Rendezvous& rendezvous, const MonitoredBarrier& barrier);

}  // namespace trireme::backend
