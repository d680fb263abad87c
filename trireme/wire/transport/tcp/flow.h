#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "trireme/wire/transport/socket.h"

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

}  // namespace trireme::transport::internal
