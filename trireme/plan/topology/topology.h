#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trireme::topology {

/// A memory of a host, and the cores that it is nearest to.
struct NumaNode {
  int socket = 0;  ///< From 0.
  std::vector<int> cores;
  std::int64_t memory_bytes = 0;
  bool operator==(const NumaNode&) const = default;
};

enum class HostDeviceKind : std::uint8_t { kGpu, kNetwork };

/// A GPU or a network card of a host.
struct HostDevice {
  std::string name;
  HostDeviceKind kind = HostDeviceKind::kGpu;
  int numa_node = -1;   ///< Of the host, that it is nearest to; -1: not known, or as near to all.
  double gb_per_s = 0;  ///< What the system says of a card's speed; 0: nothing.
  bool operator==(const HostDevice&) const = default;
};

/// A machine.
struct Host {
  std::string name;
  int num_cores = 1;
  std::int64_t memory_bytes = 0;
  std::vector<NumaNode> numa_nodes = {};  ///< Empty: not known.
  std::vector<HostDevice> devices = {};
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

/// Which messages a shared link may be on the way of.
enum class Passing : std::uint8_t {
  kHost,     ///< Between ranks of one host: a PCIe switch.
  kNetwork,  ///< Between hosts: a network card, the uplink of a rack.
  kAll,
};

/// What all messages between some ranks and the others pass: those that are under way at once share its bandwidth. What a
/// message takes alone is in the profile.
struct SharedLink {
  std::string name;
  std::vector<int> ranks;  ///< On its one side, ascending.
  double gb_per_s = 0;     ///< Each way.
  Passing passing = Passing::kNetwork;
  bool operator==(const SharedLink&) const = default;

  /// Messages between two ranks of one host, or of two.
  bool passes(bool on_one_host) const {
    return passing == Passing::kAll || (passing == Passing::kHost) == on_one_host;
  }
};

/// The machines of a run and where each rank is. Plain data; file form in docs/formats.md.
struct Topology {
  std::vector<Host> hosts;
  std::vector<RankPlace> ranks;
  std::vector<SharedLink> shared_links = {};
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

/// Whether every rank's threads have cores enough, and one more for each rank.
bool has_cores_to_spare(const Topology& topology);

/// Another host like the last rank's, with as many ranks. Links that ranks of that host alone are behind are there for it
/// again; others have its ranks behind them too.
Topology with_another_host(Topology topology);

/// Another rank like the last one, on cores and in memory that its host has more.
Topology with_another_rank(Topology topology);

/// kInvalidArgument, naming rank and host, where a rank's host or cores do not exist or a number is
/// not positive, or a link its ranks; speeds are between 1/1000 and 1000.
void check(const Topology& topology);

/// The topology for people, a line per host, rank, and what ranks share:
///
///     host 0: a, 2 cores, 8.0 GiB
///       rank 0: cores 0, 4.0 GiB
///
/// topology   one that passes `check`.
std::string show(const Topology& topology);

}  // namespace trireme::topology
