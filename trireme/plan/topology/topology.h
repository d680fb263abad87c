#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trireme::topology {

/// A machine.
struct Host {
  std::string name;
  int num_cores = 1;
  std::int64_t memory_bytes = 0;
  bool operator==(const Host&) const = default;
};

/// Where a rank runs: the cores of its host that it may use. Ranks whose cores overlap share them.
struct RankPlace {
  int host = 0;
  std::vector<int> cores;         ///< Ascending, without repeats.
  std::int64_t memory_bytes = 0;  ///< What the rank may use: `--device-memory`, or its host's part.
  int threads = 1;                ///< That it computes with at once, each of which wants a core.
  double speed = 1;               ///< Of its processor, where that of the profile's rank is 1.
  bool operator==(const RankPlace&) const = default;
};

/// The machines of a run and where each rank is. Plain data; file form in docs/formats.md.
struct Topology {
  std::vector<Host> hosts;
  std::vector<RankPlace> ranks;
  bool operator==(const Topology&) const = default;
};

/// Ranks that compete for the same cores: a connected component of the overlap of their core sets.
struct SharedCores {
  std::vector<int> ranks;        ///< Ascending.
  int num_cores = 0;             ///< In the union of their sets.
  double num_at_full_speed = 0;  ///< Ranks whose threads these cores suffice for, at least 1.
  bool operator==(const SharedCores&) const = default;
};

/// Every rank is in exactly one entry. topology: one that passes `check`.
std::vector<SharedCores> shared_cores(const Topology& topology);

/// Another host like the last rank's, with as many ranks.
Topology with_another_host(Topology topology);

/// Another rank like the last one, on cores and in memory that its host has more.
Topology with_another_rank(Topology topology);

/// kInvalidArgument, naming rank and host, where a rank's host or cores do not exist or a number is
/// not positive; speeds are between 1/1000 and 1000.
void check(const Topology& topology);

/// The topology for people, a line per host and per rank:
///
///     host 0: a, 2 cores, 8.0 GiB
///       rank 0: cores 0, 4.0 GiB
///
/// topology   one that passes `check`.
std::string show(const Topology& topology);

}  // namespace trireme::topology
