#include "trireme/wire/transport/tcp/peer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "trireme/wire/transport/error_form.h"

namespace trireme::transport::internal {

void Peer::post_send(Tag tag, PostedSend send) {
  Stream& stream = streams_[tag];
  stream.sends.push_back(std::move(send));
  check_present();
  if (stream.num_credits == 0) return;
  --stream.num_credits;
  take_credit(tag);
}

void Peer::post_recv(Tag tag, PostedRecv recv) {
  streams_[tag].recvs.push_back(std::move(recv));
  check_present();
  writer_.queue_control({.kind = FrameKind::kCredit, .tag = tag});
}

void Peer::tell(Tag tag, const Envelope& note) {
  if (has_said_goodbye_ || is_abandoned_) return;
  writer_.queue_control({.kind = FrameKind::kNote, .tag = tag, .envelope = note});
}

void Peer::take_credit(Tag tag) {
  const auto found = streams_.try_emplace(tag).first;
  Stream& stream = found->second;
  if (stream.sends.empty()) {
    ++stream.num_credits;
    return;
  }
  writer_.queue_message(tag, std::move(stream.sends.front()));
  stream.sends.pop_front();
  if (stream.is_empty()) streams_.erase(found);
}

void Peer::read() {
  if (!socket_.is_open() || is_garbage_) return;
  try {
    if (reader_.read(socket_, *this)) return;
  } catch (Error& error) {
    if (has_poisoned_) throw;  // its cause, as all ranks print it
    if (error.kind() != ErrorKind::kCorruptData) throw Error(error.add({.peer = rank_}));
    is_garbage_ = true;
    Error named(ErrorKind::kCorruptData,
                "rank " + std::to_string(rank_) + " sent what cannot be read: " + error.message());
    throw Error(named.add({.peer = rank_}));
  }
  close();
  if (!has_said_goodbye_) throw lost_rank(rank_, "its connection closed");
}

void Peer::write() {
  try {
    writer_.write(socket_);
  } catch (Error& error) {
    throw Error(error.add({.peer = rank_}));
  }
}

std::span<std::byte> Peer::begin_frame(const Frame& frame) {
  if (has_said_goodbye_ && frame.kind != FrameKind::kPoison) refuse("a frame after its goodbye");
  if (frame.kind == FrameKind::kPoison) {
    poison_.resize(frame.payload_bytes);
    return poison_;
  }
  if (frame.kind == FrameKind::kData && !is_abandoned_) return begin_data(frame);
  return {};
}

void Peer::end_frame(const Frame& frame) {
  switch (frame.kind) {
    case FrameKind::kCredit:
      if (!is_abandoned_) take_credit(frame.tag);
      return;
    case FrameKind::kData:
      if (!is_abandoned_) end_data(frame);
      return;
    case FrameKind::kNote:
      return notes_.put(rank_, frame.tag, frame.envelope);
    case FrameKind::kPoison: {
      const Error error = error_from_bytes(poison_);
      has_poisoned_ = true;
      throw Error(error);
    }
    case FrameKind::kGoodbye:
      has_said_goodbye_ = true;
      if (has_work()) throw lost_rank(rank_, "it said goodbye with messages under way");
      return;
  }
}

std::span<std::byte> Peer::begin_data(const Frame& frame) {
  if (frame.offset == 0) begin_message(frame);
  if (!incoming_ || incoming_->tag != frame.tag || incoming_->num_received != frame.offset ||
      incoming_->memory.size() != frame.message_bytes) {
    refuse("a segment of a message that is not under way");
  }
  return incoming_->memory.subspan(frame.offset, frame.payload_bytes);
}

void Peer::begin_message(const Frame& frame) {
  const auto found = streams_.find(frame.tag);
  if (incoming_ || found == streams_.end() || found->second.recvs.empty()) {
    refuse("a message that nobody asked for");
  }
  Stream& stream = found->second;
  try {
    const std::span<std::byte> memory =
        place_message(stream.recvs.front(), frame.message_bytes, frame.envelope);
    incoming_ = {frame.tag, memory, std::move(stream.recvs.front().work), 0};
  } catch (Error& error) {
    error.add({.peer = rank_});
    throw;
  }
  stream.recvs.pop_front();
  if (stream.is_empty()) streams_.erase(found);
}

void Peer::end_data(const Frame& frame) {
  incoming_->num_received += frame.payload_bytes;
  if (incoming_->num_received < frame.message_bytes) return;
  const PendingWorkPtr work = std::move(incoming_->work);
  incoming_.reset();
  work->complete();
}

void Peer::abandon(const std::vector<std::byte>& poison, std::vector<PendingWorkPtr>& works) {
  is_abandoned_ = true;
  for (auto& [tag, stream] : streams_) take_works(stream, works);
  streams_.clear();
  if (incoming_) works.push_back(std::move(incoming_->work));
  incoming_.reset();
  reader_.drop_frame();
  writer_.abandon(works);
  if (!socket_.is_open()) return;
  writer_.queue_control({.kind = FrameKind::kPoison}, poison);
  try {
    writer_.write(socket_);
  } catch (const Error&) {  // a later error: this peer cannot be told
    close();
  }
  if (is_garbage_) close();
}

bool Peer::has_work() const {
  const bool is_posted = std::any_of(streams_.begin(), streams_.end(), [](const auto& entry) {
    return !entry.second.sends.empty() || !entry.second.recvs.empty();
  });
  return is_posted || incoming_ || writer_.has_messages();
}

void Peer::check_present() const {
  if (has_said_goodbye_) throw lost_rank(rank_, "it has said goodbye");
}

void Peer::refuse(const std::string& problem) { throw Error(ErrorKind::kCorruptData, problem); }

}  // namespace trireme::transport::internal
