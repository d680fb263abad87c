#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "trireme/wire/transport/socket.h"
#include "trireme/wire/transport/tcp/frame.h"

namespace trireme::transport::internal {

/// Who gets the frames of a connection. May throw: the connection is not read any further then.
class FrameHandler {
 public:
  virtual ~FrameHandler() = default;

  /// A frame begins. Memory for its payload: all of it, or none to drop it.
  virtual std::span<std::byte> begin_frame(const Frame& frame) = 0;

  /// The payload is there.
  virtual void end_frame(const Frame& frame) = 0;
};

/// What arrives through one connection: payloads go straight to where the handler says.
///
/// Threads  confined to the progress thread.
class FrameReader {
 public:
  /// Reads until nothing is there or it is the turn of others. Returns whether more can follow:
  /// not after the connection's end. kCorruptData for bytes that are no frames.
  bool read(const Descriptor& socket, FrameHandler& handler);

  /// Lets go of the handler's memory: the rest of the current frame is dropped.
  void drop_frame();

  /// The same, where that is data of a failed domain.
  void drop_data(Tag first_tag);

 private:
  bool has_whole_frame() const {
    return num_header_bytes_ == kHeaderBytes && num_payload_bytes_ == frame_.payload_bytes;
  }
  std::optional<std::size_t> read_header(const Descriptor& socket, FrameHandler& handler);
  std::optional<std::size_t> read_payload(const Descriptor& socket);

  FrameHeader header_{};
  std::size_t num_header_bytes_ = 0;  ///< Read so far; all of them: a payload is being read.
  Frame frame_;
  std::span<std::byte> memory_;
  std::size_t num_payload_bytes_ = 0;
  std::uint64_t sequence_ = 0;
};

}  // namespace trireme::transport::internal
