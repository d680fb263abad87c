#include "trireme/wire/endpoint/tcp/frame.h"

#include <algorithm>
#include <string>
#include <vector>

#include "trireme/wire/system/byte_form.h"

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

static_assert(kMaxLetter == Messages::kMaxEager);

Frame frame_of(const Letter& letter) {
  FixedWriter<sizeof(Envelope)> writer;
  writer.integer(letter.label.tag)
      .bytes(std::as_bytes(std::span(letter.label.type)))
      .integer(static_cast<std::uint8_t>(letter.kind));
  return {.kind = FrameKind::kLetter,
          .tag = letter.domain,
          .message_bytes = letter.bytes,
          .offset = letter.number,
          .envelope = writer.written()};
}

Letter letter_of(const Frame& frame, std::span<const std::byte> payload) {
  ByteReader reader(frame.envelope);
  Letter letter{.kind = Letter::Kind::kMessage,
                .domain = frame.tag,
                .label = {.tag = reader.integer<std::uint64_t>(), .type = {}},
                .bytes = frame.message_bytes,
                .number = frame.offset,
                .payload = payload};
  for (char& character : letter.label.type) character = reader.integer<char>();
  letter.kind = static_cast<Letter::Kind>(reader.integer<std::uint8_t>());
  const bool is_kind =
      letter.kind >= Letter::Kind::kMessage && letter.kind <= Letter::Kind::kAllowance;
  if (is_kind && letter.domain == domain_of(letter.domain)) return letter;
  throw Error(ErrorKind::kCorruptData, "a letter of no kind, or for no domain");
}

}  // namespace trireme::transport::internal
