#include "trireme/wire/transport/tcp/frame_reader.h"

#include <algorithm>
#include <array>
#include <string>

namespace trireme::transport::internal {

bool FrameReader::read(const Descriptor& socket, FrameHandler& handler) {
  std::size_t turn = 0;
  while (turn < kTurnBytes) {
    const auto count =
        num_header_bytes_ < kHeaderBytes ? read_header(socket, handler) : read_payload(socket);
    if (!count) return false;
    if (*count == 0) return true;
    turn += *count;
    if (has_whole_frame()) {
      num_header_bytes_ = 0;
      handler.end_frame(frame_);
      // An offer that the handler has read.
      if (frame_.kind == FrameKind::kOffer && frame_.offset != 0) turn += frame_.message_bytes;
    }
  }
  return true;
}

void FrameReader::drop_frame() {
  memory_ = {};
  if (has_whole_frame()) num_header_bytes_ = 0;
}

void FrameReader::drop_data(Tag first_tag) {
  if (frame_.kind == FrameKind::kData && domain_of(frame_.tag) == first_tag) memory_ = {};
}

std::optional<std::size_t> FrameReader::read_header(const Descriptor& socket,
                                                    FrameHandler& handler) {
  const auto count = read_some(socket, std::span(header_).subspan(num_header_bytes_));
  num_header_bytes_ += count.value_or(0);
  if (num_header_bytes_ < kHeaderBytes) return count;
  frame_ = parse_frame(header_);
  if (frame_.sequence != sequence_++) {
    throw Error(ErrorKind::kCorruptData, "frame " + std::to_string(frame_.sequence) +
                                             " where frame " + std::to_string(sequence_ - 1) +
                                             " should be");
  }
  num_payload_bytes_ = 0;
  memory_ = {};  // the handler may throw
  memory_ = handler.begin_frame(frame_);
  return count;
}

std::optional<std::size_t> FrameReader::read_payload(const Descriptor& socket) {
  std::array<std::byte, 16 * 1024> dropped;
  const std::size_t missing = frame_.payload_bytes - num_payload_bytes_;
  const std::span<std::byte> target =
      memory_.empty() ? std::span(dropped).first(std::min(missing, dropped.size()))
                      : memory_.subspan(num_payload_bytes_);
  const auto count = read_some(socket, target);
  num_payload_bytes_ += count.value_or(0);
  return count;
}

}  // namespace trireme::transport::internal
