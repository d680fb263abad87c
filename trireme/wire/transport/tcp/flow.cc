#include "trireme/wire/transport/tcp/flow.h"

#include "trireme/wire/transport/byte_form.h"

namespace trireme::transport::internal {
namespace {

constexpr std::size_t kFlowTurnBytes = 1 << 20;

}  // namespace

Flow::Header Flow::to_bytes(const Segment& segment) {
  FixedWriter<kHeaderBytes> writer;
  writer.integer(segment.key).integer(segment.offset).integer(segment.bytes);
  return writer.written();
}

Segment Flow::parse(const Header& header) {
  ByteReader reader(header);
  Segment segment;
  segment.key = reader.integer<std::uint64_t>();
  segment.offset = reader.integer<std::uint64_t>();
  segment.bytes = reader.integer<std::uint64_t>();
  return segment;
}

void Flow::start(const Segment& segment, std::span<const std::byte> payload) {
  sent_header_ = to_bytes(segment);
  payload_ = payload;
  num_written_ = 0;
}

std::optional<bool> Flow::write() {
  while (num_written_ < kHeaderBytes + payload_.size()) {
    const std::size_t in_header = std::min(num_written_, kHeaderBytes);
    const std::array<std::span<const std::byte>, 2> rest = {
        std::span<const std::byte>(sent_header_).subspan(in_header),
        payload_.subspan(num_written_ - in_header)};
    const auto count = write_some(socket_, rest);
    if (!count) return std::nullopt;
    if (*count == 0) return false;
    num_written_ += *count;
  }
  return true;
}

bool Flow::read(SegmentHandler& handler) {
  for (std::size_t turn = 0; turn < kFlowTurnBytes;) {
    const auto count = read_once(handler);
    if (!count) return false;
    if (*count == 0) return true;
    turn += *count;
  }
  return true;
}

std::optional<std::size_t> Flow::read_once(SegmentHandler& handler) {
  if (num_header_bytes_ < kHeaderBytes) {
    const auto count = read_some(socket_, std::span(header_).subspan(num_header_bytes_));
    num_header_bytes_ += count.value_or(0);
    if (num_header_bytes_ == kHeaderBytes) {
      segment_ = parse(header_);
      memory_ = handler.begin_segment(segment_);
      num_read_ = 0;
    }
    return count;
  }
  const auto count = read_some(socket_, memory_.subspan(num_read_));
  num_read_ += count.value_or(0);
  if (num_read_ == memory_.size()) {
    num_header_bytes_ = 0;
    handler.end_segment(segment_);
  }
  return count;
}

}  // namespace trireme::transport::internal
