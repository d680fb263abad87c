#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "trireme/wire/endpoint/matcher.h"
#include "trireme/wire/endpoint/tcp/frame.h"
#include "trireme/wire/system/socket.h"

namespace trireme::transport::internal {

/// A send that its receiver has heard of.
struct Offered {
  Tag tag;
  PostedSend send;
  bool is_readable;  ///< The receiver reads it; else the carrier brings it.
};

/// What leaves through one connection: control frames first, then messages one after another, in
/// segments, or as an offer. A send's work is completed when its last byte is written; one that is
/// offered stays until it is taken.
///
/// Threads  confined to the progress thread.
class FrameWriter {
 public:
  void queue_control(const Frame& frame, std::vector<std::byte> payload = {});
  void queue_message(Tag tag, PostedSend send);
  void queue_offer(Offered offered);

  /// The oldest send whose offer is written; nothing where there is none.
  std::optional<Offered> take_offered();

  /// Writes until all is written, the socket is full, or it is the turn of others. A broken
  /// connection swallows everything: its reader will find the reason.
  void write(const Descriptor& socket);

  /// Whether a frame was started since the last call.
  bool was_used() { return std::exchange(seen_sequence_, sequence_) != sequence_; }

  bool is_idle() const { return !has_current_ && controls_.empty() && messages_.empty(); }
  bool has_messages() const { return !messages_.empty() || !offered_.empty(); }

  /// Lets go of all memory that is lent; `works` gets the works. A frame that is half written will
  /// be finished from a copy.
  void abandon(std::vector<PendingWorkPtr>& works);

  /// The same for the messages of a domain. kept: gets the works of those that have been offered,
  /// which end when they are answered.
  void abandon(Tag first_tag, std::vector<PendingWorkPtr>& works,
               std::vector<PendingWorkPtr>& kept);

 private:
  struct Control {
    Frame frame;
    std::vector<std::byte> payload;
  };
  struct Message {
    Tag tag;
    PostedSend send;
    std::size_t offset;
    bool is_offer;
    bool is_readable;  ///< Of an offer.
  };

  bool has_more() const;
  bool start_next();
  void start_offer(const Message& message);
  void start_segment(Message& message);
  void start(Frame frame, std::span<const std::byte> payload);
  void finish_current();
  void own_payload();

  std::deque<Control> controls_;
  std::deque<Message> messages_;
  std::deque<Offered> offered_;
  std::uint64_t sequence_ = 0;
  std::uint64_t seen_sequence_ = 0;

  // The frame that is being written.
  bool has_current_ = false;
  bool is_message_ = false;  ///< Of the first of `messages_`.
  bool ends_message_ = false;
  FrameHeader header_{};
  std::span<const std::byte> payload_;  ///< Of a lent message or of `owned_`.
  std::vector<std::byte> owned_;
  std::size_t written_ = 0;  ///< Bytes of header and payload.
};

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
