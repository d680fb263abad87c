#include "trireme/wire/endpoint/tcp/frame_io.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace trireme::transport::internal {

void FrameWriter::queue_control(const Frame& frame, std::vector<std::byte> payload) {
  controls_.push_back({frame, std::move(payload)});
}

void FrameWriter::queue_message(Tag tag, PostedSend send) {
  messages_.push_back({tag, std::move(send), 0, false, false});
}

void FrameWriter::queue_offer(Offered offered) {
  messages_.push_back({offered.tag, std::move(offered.send), 0, true, offered.is_readable});
}

std::optional<Offered> FrameWriter::take_offered() {
  if (offered_.empty()) return std::nullopt;
  Offered offered = std::move(offered_.front());
  offered_.pop_front();
  return offered;
}

void FrameWriter::write(const Descriptor& socket) {
  std::size_t turn = 0;
  while (turn < kTurnBytes && (has_current_ || start_next())) {
    const std::size_t in_header = std::min(written_, kHeaderBytes);
    const std::size_t in_payload = written_ - in_header;
    const std::array<std::span<const std::byte>, 2> rest = {
        std::span<const std::byte>(header_).subspan(in_header), payload_.subspan(in_payload)};
    const auto count = write_some(socket, rest, has_more() ? Behind::kMore : Behind::kNothing);
    if (!count) {
      has_current_ = false;
      controls_.clear();
      return;
    }
    if (*count == 0) return;
    written_ += *count;
    turn += *count;
    if (written_ == kHeaderBytes + payload_.size()) finish_current();
  }
}

/// Something is behind the current frame: small ones share packets then.
bool FrameWriter::has_more() const {
  if (!controls_.empty()) return true;
  return is_message_ ? messages_.size() > 1 || !ends_message_ : !messages_.empty();
}

bool FrameWriter::start_next() {
  if (!controls_.empty()) {
    Control control = std::move(controls_.front());
    controls_.pop_front();
    owned_ = std::move(control.payload);
    ends_message_ = false;
    is_message_ = false;
    start(control.frame, owned_);
    return true;
  }
  if (messages_.empty()) return false;
  is_message_ = true;
  Message& message = messages_.front();
  message.is_offer ? start_offer(message) : start_segment(message);
  return true;
}

void FrameWriter::start_offer(const Message& message) {
  ends_message_ = true;
  const std::span<const std::byte> data = message.send.data;
  start({.kind = FrameKind::kOffer,
         .tag = message.tag,
         .message_bytes = data.size(),
         .offset = message.is_readable ? reinterpret_cast<std::uint64_t>(data.data()) : 0,
         .envelope = message.send.envelope},
        {});
}

void FrameWriter::start_segment(Message& message) {
  const std::span<const std::byte> rest = message.send.data.subspan(message.offset);
  const std::span<const std::byte> segment = rest.first(std::min(rest.size(), kMaxSegment));
  ends_message_ = segment.size() == rest.size();
  start({.kind = FrameKind::kData,
         .tag = message.tag,
         .message_bytes = message.send.data.size(),
         .offset = message.offset,
         .envelope = message.offset == 0 ? message.send.envelope : Envelope{}},
        segment);
  message.offset += segment.size();
}

void FrameWriter::start(Frame frame, std::span<const std::byte> payload) {
  frame.sequence = sequence_++;
  frame.payload_bytes = payload.size();
  header_ = to_bytes(frame);
  payload_ = payload;
  written_ = 0;
  has_current_ = true;
}

void FrameWriter::finish_current() {
  has_current_ = false;
  if (!std::exchange(ends_message_, false)) return;
  Message message = std::move(messages_.front());
  messages_.pop_front();
  if (message.is_offer) {
    offered_.push_back({message.tag, std::move(message.send), message.is_readable});
  } else {
    message.send.work->complete();
  }
}

void FrameWriter::abandon(std::vector<PendingWorkPtr>& works) {
  for (Message& message : messages_) works.push_back(std::move(message.send.work));
  for (Offered& offered : offered_) works.push_back(std::move(offered.send.work));
  messages_.clear();
  offered_.clear();
  own_payload();
}

/// The frame that is being written ends no message any more, and needs no memory of one.
void FrameWriter::own_payload() {
  ends_message_ = false;
  if (!has_current_ || !std::exchange(is_message_, false)) return;
  owned_.assign(payload_.begin(), payload_.end());
  payload_ = owned_;
}

void FrameWriter::abandon(Tag first_tag, std::vector<PendingWorkPtr>& works,
                          std::vector<PendingWorkPtr>& kept) {
  for (const Offered& offered : offered_) {
    if (domain_of(offered.tag) == first_tag) kept.push_back(offered.send.work);
  }
  std::deque<Message> others;
  bool is_current = has_current_ && is_message_;  // the first
  for (Message& message : messages_) {
    const bool is_its = domain_of(message.tag) == first_tag;
    const bool is_being_offered = is_current && message.is_offer;
    if (is_its && is_being_offered) kept.push_back(message.send.work);
    if (is_its && !is_being_offered) {
      if (is_current) own_payload();
      works.push_back(std::move(message.send.work));
    } else {
      others.push_back(std::move(message));
    }
    is_current = false;
  }
  messages_ = std::move(others);
}

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
