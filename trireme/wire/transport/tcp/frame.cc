#include "trireme/wire/transport/tcp/frame.h"

#include <algorithm>
#include <string>
#include <vector>

#include "trireme/wire/transport/byte_form.h"

namespace trireme::transport::internal {
namespace {

constexpr std::uint32_t kMagic = 0x4d'45'52'54;  // `TREM`
constexpr std::uint16_t kVersion = 6;

bool may_have_envelope(const Frame& frame) {
  return frame.kind == FrameKind::kNote || frame.kind == FrameKind::kOffer ||
         frame.kind == FrameKind::kLetter || (frame.kind == FrameKind::kData && frame.offset == 0);
}

bool is_consistent(const Frame& frame) {
  if (frame.envelope != Envelope{} && !may_have_envelope(frame)) return false;
  switch (frame.kind) {
    case FrameKind::kCredit:
    case FrameKind::kGoodbye:
    case FrameKind::kNote:
    case FrameKind::kTaken:
    case FrameKind::kAlive:
      return frame.payload_bytes == 0 && frame.message_bytes == 0 && frame.offset == 0;
    case FrameKind::kPoison:
    case FrameKind::kFailed:
      return frame.payload_bytes <= kMaxPoison && frame.message_bytes == 0 && frame.offset == 0;
    case FrameKind::kLetter:
      return frame.payload_bytes <= kMaxLetter && frame.message_bytes <= kMaxMessage;
    case FrameKind::kOffer:
      return frame.payload_bytes == 0 && frame.message_bytes > 0 &&
             frame.message_bytes <= kMaxMessage;
    case FrameKind::kReader:
      return frame.payload_bytes == 0 && frame.message_bytes == 0 && frame.offset != 0 &&
             frame.tag != 0;
    case FrameKind::kAccept:
      return frame.payload_bytes == 0 && frame.message_bytes == 0;
    case FrameKind::kData:
      return frame.payload_bytes <= kMaxSegment && frame.message_bytes <= kMaxMessage &&
             frame.offset <= frame.message_bytes &&
             frame.payload_bytes <= frame.message_bytes - frame.offset &&
             (frame.payload_bytes > 0 || frame.message_bytes == 0);
  }
  return false;
}

}  // namespace

FrameHeader to_bytes(const Frame& frame) {
  FixedWriter<kHeaderBytes> writer;
  writer.integer(kMagic)
      .integer(kVersion)
      .integer(static_cast<std::uint16_t>(frame.kind))
      .integer(frame.tag)
      .integer(frame.sequence)
      .integer(frame.payload_bytes)
      .integer(frame.message_bytes)
      .integer(frame.offset)
      .bytes(frame.envelope);
  return writer.written();
}

Frame parse_frame(const FrameHeader& header) {
  ByteReader reader(header);
  const auto magic = reader.integer<std::uint32_t>();
  const auto version = reader.integer<std::uint16_t>();
  Frame frame;
  frame.kind = static_cast<FrameKind>(reader.integer<std::uint16_t>());
  frame.tag = reader.integer<Tag>();
  frame.sequence = reader.integer<std::uint64_t>();
  frame.payload_bytes = reader.integer<std::uint64_t>();
  frame.message_bytes = reader.integer<std::uint64_t>();
  frame.offset = reader.integer<std::uint64_t>();
  for (std::byte& byte : frame.envelope) byte = std::byte{reader.integer<std::uint8_t>()};
  reader.finish();
  if (magic != kMagic || version != kVersion || !is_consistent(frame)) {
    throw Error(ErrorKind::kCorruptData, "bytes that are no frame of this version");
  }
  return frame;
}

}  // namespace trireme::transport::internal
