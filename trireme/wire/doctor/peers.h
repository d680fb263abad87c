#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "trireme/wire/endpoint/endpoint.h"

namespace trireme::doctor {

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
