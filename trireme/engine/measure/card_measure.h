#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "trireme/engine/measure/measurement.h"
#include "trireme/plan/topology/topology.h"
#include "trireme/wire/endpoint/endpoint.h"

namespace trireme::measure {

struct CardOptions {
  std::int64_t message_bytes = std::int64_t{4} << 20;
  int max_messages = 256;
  std::chrono::milliseconds time{300};  ///< That each of the two measured rounds takes about.
};

/// GB/s that the ranks of each host send to other hosts, all ranks of all hosts at once: of three hosts, 0 to 1, 1 to 2
/// and 2 to 0. So much their network cards and what is between them carry, each way. The same on all ranks; empty
/// where there is one host.
///
/// topology   of the world that `ranks` are all of; says which rank is on which host.
/// Cost       2 x `time`, longer on slow links: a message each at least. Memory of two messages a rank.
/// Errors     those of the endpoint; kTimeout where a message takes longer than the deadline of `ranks`.
std::vector<double> measure_cards(transport::Endpoint& endpoint, const BusyRanks& ranks,
                                  const topology::Topology& topology,
                                  const CardOptions& options = {});

}  // namespace trireme::measure
