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
  int max_messages = 256;               ///< From a rank to another, of a round.
  std::chrono::milliseconds time{300};  ///< That a round takes about.
};

/// GB/s that the network card of each host carries each way, with what is between hosts: all ranks of all hosts send at
/// once, each host to one other and as many bytes as it gets. The same on all ranks; empty where there is one host.
///
/// In rounds each host sends to the next one, then to the second next, the fourth next and so on. A host gets its best
/// round, so that a slow card makes no other slow that some round pairs with a fast one. Of two hosts, both get what the
/// slower card carries.
///
/// topology   of the world that `ranks` are all of; says which rank is on which host.
/// Cost       2 x `time`, of more than four hosts log2(hosts) x `time`; longer on slow links, two messages a round at
///            least. Memory of a message for each that a rank sends to or hears at once.
/// Errors     those of the endpoint; kTimeout where a message takes longer than the deadline of `ranks`.
std::vector<double> measure_cards(transport::Endpoint& endpoint, const BusyRanks& ranks,
                                  const topology::Topology& topology,
                                  const CardOptions& options = {});

}  // namespace trireme::measure
