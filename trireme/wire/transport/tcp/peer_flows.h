#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <vector>

#include "trireme/wire/transport/pending_work.h"
#include "trireme/wire/transport/poller.h"
#include "trireme/wire/transport/tcp/flow.h"

namespace trireme::transport::internal {

/// Longest segment of a payload; all but the last one of it have this size.
inline constexpr std::size_t kFlowSegment = 256 * 1024;

/// The flows to one other rank. What goes there is one queue of segments; a flow that can be
/// written to takes the next one, so that a slow flow carries less.
///
/// Errors   kPeerLost where a flow ends while payloads are under way, or none is left for a new
/// one;
///          kCorruptData where a segment arrives that nobody expects.
/// Threads  confined to the progress thread.
class PeerFlows final : private SegmentHandler {
 public:
  PeerFlows(int rank, std::vector<Descriptor> sockets);

  void receive(std::uint64_t key, std::span<std::byte> memory, PendingWorkPtr work);
  void send(std::uint64_t key, std::span<const std::byte> data, PendingWorkPtr work);

  // As far as possible without blocking.
  void read(std::size_t flow);
  void write();

  bool has_work() const { return !outgoing_.empty() || !incoming_.empty(); }

  std::size_t num_flows() const { return lanes_.size(); }
  const Descriptor& socket(std::size_t flow) const { return lanes_[flow].flow.socket(); }
  Poller::Interest wanted(std::size_t flow);

  /// Closes the flows and lets go of all memory; `works` gets the works.
  void abandon(std::vector<PendingWorkPtr>& works);

 private:
  struct Outgoing {
    std::uint64_t key;
    std::span<const std::byte> data;
    PendingWorkPtr work;
    std::size_t num_started = 0;  ///< Bytes.
    std::size_t num_written = 0;  ///< Bytes.
  };
  struct Incoming {
    std::span<std::byte> memory;
    PendingWorkPtr work;
    std::vector<bool> has_begun;  ///< By segment.
    std::size_t num_read = 0;     ///< Bytes.
  };
  struct Lane {
    Flow flow;
    Outgoing* outgoing = nullptr;  ///< Whose segment it writes.
    std::size_t num_bytes = 0;     ///< Of the segment.
  };

  std::span<std::byte> begin_segment(const Segment& segment) override;
  void end_segment(const Segment& segment) override;
  Outgoing* next_to_start();
  bool write_segment(Lane& lane);
  bool start_next(Lane& lane);
  void end(Outgoing& outgoing);
  void end_of(Lane& lane);
  void check_open() const;

  const int rank_;
  std::list<Outgoing> outgoing_;  ///< The oldest first.
  std::map<std::uint64_t, Incoming> incoming_;
  std::vector<Lane> lanes_;
};

}  // namespace trireme::transport::internal
