#include "trireme/wire/transport/tcp/letter_frame.h"

#include <algorithm>

#include "trireme/wire/transport/byte_form.h"

namespace trireme::transport::internal {

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
