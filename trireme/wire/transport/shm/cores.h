#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <span>

#include "trireme/wire/transport/shm/signal.h"

namespace trireme::transport {

/// The cores on which a process may run, for other processes to read. All zeros: unknown.
struct Cores {
  static constexpr int kMost = 1024;

  std::array<std::uint64_t, kMost / 64> allowed{};  ///< A bit for each; those beyond are left out.
  std::uint32_t quota_percent = 0;  ///< Of a core's time, of its control group; 0: no limit.
};

/// Of this process: its affinity before `bind_to_core`, and the least quota of its control groups.
Cores own_cores();

/// Whether `ranks`, of `ranks_of_host` on this host, may spin: each has a core, and time for it.
/// ranks: those that are known, this one among them.
Patience patience_for(std::span<const Cores> ranks, int ranks_of_host);

}  // namespace trireme::transport
