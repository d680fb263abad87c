#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "trireme/wire/endpoint/tcp/carrier.h"
#include "trireme/wire/endpoint/work.h"
#include "trireme/wire/system/poller.h"
#include "trireme/wire/system/socket.h"

namespace trireme::transport::internal {

/// A part of a payload, as one flow carries it.
///
/// On the wire, 24 bytes, little-endian, before the part's own: key 8, offset 8, bytes 8.
struct Segment {
  std::uint64_t key = 0;     ///< Of the payload.
  std::uint64_t offset = 0;  ///< In the payload.
  std::uint64_t bytes = 0;

  bool operator==(const Segment&) const = default;
};

class SegmentHandler {
 public:
  virtual ~SegmentHandler() = default;

  /// A segment arrives: memory of its size. kCorruptData where none is expected.
  virtual std::span<std::byte> begin_segment(const Segment& segment) = 0;

  /// It is there.
  virtual void end_segment(const Segment& segment) = 0;
};

/// One of the connections that share the payloads between two ranks.
///
/// Caller-synchronised.
class Flow {
 public:
  explicit Flow(Descriptor socket) : socket_(std::move(socket)) {}

  const Descriptor& socket() const { return socket_; }
  bool is_open() const { return socket_.is_open(); }
  void close() { socket_.reset(); }

  /// Begins a segment, the one before being written. payload: lent until `write` has ended it.
  void start(const Segment& segment, std::span<const std::byte> payload);

  // As far as possible without blocking; nothing at the connection's end.
  std::optional<bool> write();  ///< Whether the segment is written.
  bool read(SegmentHandler& handler);

 private:
  static constexpr std::size_t kHeaderBytes = 24;
  using Header = std::array<std::byte, kHeaderBytes>;

  static Header to_bytes(const Segment& segment);
  static Segment parse(const Header& header);
  std::optional<std::size_t> read_once(SegmentHandler& handler);

  Descriptor socket_;
  Header sent_header_{};
  std::span<const std::byte> payload_;
  std::size_t num_written_ = 0;  ///< Of header and payload.
  Header header_{};
  std::size_t num_header_bytes_ = 0;
  Segment segment_;  ///< That arrives, when the header is there.
  std::span<std::byte> memory_;
  std::size_t num_read_ = 0;  ///< Of the segment.
};

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

/// Payloads over several connections to each rank, where one does not fill the link.
class FlowCarrier final : public Carrier {
 public:
  /// flows       by rank; of the own one none.
  /// min_bytes   of a message for them; others take the first connection. At least 1.
  FlowCarrier(std::vector<std::vector<Descriptor>> flows, std::size_t min_bytes);

  bool takes(std::size_t bytes) const override { return bytes >= min_bytes_; }
  std::uint64_t receive(int peer, std::span<std::byte> memory, PendingWorkPtr work) override;
  void send(int peer, std::uint64_t key, std::span<const std::byte> data,
            PendingWorkPtr work) override;
  bool has_work(int peer) const override;
  void progress() override;
  const Descriptor& descriptor() const override { return poller_.descriptor(); }
  Deadline next_progress() override { return trouble_.due(); }
  void abandon(std::vector<PendingWorkPtr>& works) override;

 private:
  /// A rank's flows, and what the poller was told of them.
  struct Peer {
    PeerFlows flows;
    std::vector<Poller::Interest> interests;
  };

  void advance(int rank, const std::function<void(PeerFlows&)>& step);

  const std::size_t min_bytes_;
  Poller poller_;
  std::map<int, Peer> peers_;
  std::uint64_t last_key_ = 0;
  Trouble trouble_;
};

}  // namespace trireme::transport::internal
