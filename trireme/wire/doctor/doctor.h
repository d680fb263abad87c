#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/wire/bootstrap/token.h"
#include "trireme/wire/endpoint/endpoint.h"
#include "trireme/wire/system/socket.h"

namespace trireme::doctor {

enum class Verdict : std::uint8_t {
  kGood,
  kSlow,    ///< Works, but not as fast as it could.
  kBroken,  ///< Ranks cannot work like that.
};

/// `good`, `slow`, `broken`.
std::string_view to_text(Verdict verdict);

/// What a check has found.
struct Finding {
  std::string topic;
  Verdict verdict = Verdict::kGood;
  std::string found;
  std::string advice;  ///< What to do; empty where all is well.
};

/// A table, a line each, and below it what to do.
std::string to_text(std::span<const Finding> findings);

/// Looks at this host as a rank's process sees it: addresses, descriptors, locked memory, the
/// kernel's limits for sockets, memfd and futex, cores, clock.
///
/// local_ranks   that are to run on it; 0: not known.
std::vector<Finding> examine_host(int local_ranks = 0);

/// Whether ranks may read each other's memory where the kernel's Yama has that scope.
Finding judge_peer_memory(const std::string& ptrace_scope);

/// Tries to speak with the store at `address`, for `patience` at most: whether it answers and how
/// long that took, by which address this host reaches it, whether a rank is lost; else why not.
/// Ranks that use it are not disturbed.
///
/// token   of the store's job.
/// host    where others are to reach ranks of this host, as transport::host_of has it. A loopback
///         is found broken unless the store is at one too: then all ranks are here.
Finding examine_store(const transport::Address& address, const transport::Token& token,
                      std::chrono::milliseconds patience, const std::string& host = "");

/// The way from rank 0 to another rank, as a group of both uses it.
struct PeerPath {
  int rank = 0;
  std::string host;  ///< Its name.
  std::string path;  ///< `shm`, or Endpoint::path; small messages go by tcp in any case.
  std::chrono::duration<double, std::micro> round_trip{0};  ///< Median of barriers.
  double gb_per_s = 0;                                      ///< Of broadcasts of 4 MiB, the best.
};

/// Measures from rank 0 to each other rank, one after the other. Every rank of the world calls it.
///
/// Returns  on rank 0 a path per other rank; elsewhere none.
/// Errors   kTimeout, naming who is late; kPeerLost.
/// Cost     some 10 ms and 24 MiB per rank.
std::vector<PeerPath> measure_peers(transport::Endpoint& endpoint,
                                    std::chrono::milliseconds deadline);

/// A table.
std::string to_text(const std::vector<PeerPath>& paths);

}  // namespace trireme::doctor
