#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "trireme/wire/endpoint/endpoint.h"
#include "trireme/wire/endpoint/matcher.h"

namespace trireme::transport::internal {

enum class FrameKind : std::uint16_t {
  kCredit = 1,  ///< The receiver has memory for one message of `tag`.
  kData,        ///< A segment of a message, sent against a credit.
  kPoison,      ///< The world has failed; payload = the error (byte_form.h).
  kGoodbye,     ///< Orderly end: nothing but poison follows.
  kNote,        ///< The envelope is all there is to say (messages.h).
  kOffer,       ///< A message, sent against a credit, whose payload comes another way.
  kAccept,      ///< The receiver has memory for the oldest offer.
  kTaken,       ///< The receiver has read the payload of the oldest offer, or wants none of it.
  kReader,      ///< This process can read the other one's memory.
  kFailed,      ///< The domain of `tag`, its first, has failed; payload = the error.
  kAlive,       ///< Nothing else was sent for a while.
  kLetter,      ///< Of one matcher to another (`letter_of`).
};

/// What precedes a payload on a connection.
///
/// On the wire, 96 bytes, little-endian: magic 4, version 2, kind 2, tag 8, sequence 8,
/// payload_bytes 8, message_bytes 8, offset 8, envelope 48.
struct Frame {
  FrameKind kind = FrameKind::kCredit;
  Tag tag = 0;
  std::uint64_t sequence = 0;       ///< Frames of the connection before this one.
  std::uint64_t payload_bytes = 0;  ///< That follow the header.
  std::uint64_t message_bytes = 0;  ///< Data, offer: size of the whole message.
  /// Data: where in the message the payload belongs. Accept: the key for the carrier. Offer: the
  /// payload's address in its process, for the receiver to read; 0: the carrier will bring it.
  /// Reader: the address of a word that is the tag while what it offers is lent (peer.h). Letter:
  /// its number.
  std::uint64_t offset = 0;
  /// Of a note, an offer, a letter, and of a message's first segment; else zeros.
  Envelope envelope{};

  bool operator==(const Frame&) const = default;
};

inline constexpr std::size_t kHeaderBytes = 96;
using FrameHeader = std::array<std::byte, kHeaderBytes>;

/// Longest payload of data: between segments control frames get their turn. Messages do not: one
/// follows another.
inline constexpr std::size_t kMaxSegment = 256 * 1024;
/// After so many bytes of one connection it is the next one's turn.
inline constexpr std::size_t kTurnBytes = 4 * kMaxSegment;
inline constexpr std::size_t kMaxPoison = 64 * 1024;
inline constexpr std::size_t kMaxLetter = 8 * 1024;
inline constexpr std::uint64_t kMaxMessage = std::uint64_t{1} << 48;

FrameHeader to_bytes(const Frame& frame);

/// Inverse of `to_bytes`. kCorruptData where the bytes are no header of this version, or one whose
/// numbers contradict each other.
Frame parse_frame(const FrameHeader& header);

/// The frame of a letter, without its payload.
Frame frame_of(const Letter& letter);

/// Inverse. kCorruptData where it is none.
Letter letter_of(const Frame& frame, std::span<const std::byte> payload);

}  // namespace trireme::transport::internal
