#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trireme/engine/measure/detect_topology.h"
#include "trireme/engine/measure/measurement.h"
#include "trireme/plan/profile/profile.h"
#include "trireme/wire/endpoint/endpoint.h"

namespace trireme::measure {

struct LinkOptions {
  std::string host = host_name();  ///< Of this rank; others are on another where its name differs.
  std::vector<std::int64_t> sizes = {64,       256,       1 << 10, 4 << 10, 16 << 10,
                                     64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20};
  int min_round_trips = 5;
  int max_round_trips = 100;
  std::int64_t max_bytes = std::int64_t{64} << 20;  ///< One way, unless that is too few trips.

  // For slow links.
  /// Round trips of a size take about so long at most, unless that is too few trips.
  std::chrono::milliseconds max_time{500};
  /// Messages after one that takes so long, if that has 1 MiB at least, are left out: where bytes
  /// are all that counts, the last two times say how long more of them take.
  std::chrono::milliseconds long_time{50};
};

/// How many questions and answers of a size are timed.
///
/// last   of the size before, if there was one: how long these will take is guessed from it.
int round_trips_of(std::int64_t bytes, const std::optional<profile::LinkTime>& last,
                   const LinkOptions& options);

struct MeasuredLinks {
  std::vector<profile::LinkTable> tables;
  std::vector<profile::MessageWork>
      work;  ///< Beside compute; of a host, where it has several ranks.
};

/// One-way times of messages by ping-pong: half a round trip, the recv of every message posted
/// before it is sent. A message was just written, and goes to memory that is in no cache. Between
/// the first two ranks that share a host (`host`), and between rank 0 and the first one that is on
/// another (`network`), where there are such. The same on all ranks.
///
///     one     send . . . . . . . recv      alone: both sleep until their message is there
///     other   . . . recv send . . . .      beside compute: all ranks compute in slices of some
///                                          microseconds and look after each
///
/// Beside compute, messages are moved by the transport's threads, which have to get a core from
/// ranks that never pause: as in a pipeline, where a message comes while another microbatch
/// computes. No thread is added for the measurement, which would compete too; instead, an arrival
/// is noticed late by half a slice on average.
///
/// Ranks want cores of their own: where the system may move them, it puts both on the core that the
/// messages wake them on, and a message then waits for the other's turn. 64 B beside compute took
/// 4-8 ms so, and 0.04 ms with each rank's main thread bound to a core (2 cores, Linux 6.18, tcp,
/// November 2026).
///
/// Cost       some seconds for each pair, on slow links too (`max_time`, `long_time`).
/// endpoint   of the world that `ranks` are all of.
/// Errors     kInvalidArgument where `ranks` are not all; those of the endpoint; kTimeout where a
///            message takes longer than the deadline of `ranks`.
MeasuredLinks measure_links(transport::Endpoint& endpoint, const BusyRanks& ranks,
                            const LinkOptions& options);

}  // namespace trireme::measure
