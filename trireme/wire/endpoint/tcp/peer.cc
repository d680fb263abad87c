#include "trireme/wire/endpoint/tcp/peer.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <random>
#include <string>
#include <system_error>
#include <utility>

#include "trireme/wire/endpoint/tcp/frame.h"
#include "trireme/wire/system/byte_form.h"

namespace trireme::transport::internal {
namespace {

constexpr std::size_t kMinReadBytes = 64 * 1024;  // below, the answer costs more than a copy

std::uint64_t random_word() {
  std::random_device device;
  return static_cast<std::uint64_t>(device()) << 32 | device() | 1U;  // not 0
}

}  // namespace

void Peer::tell_that_it_reads() {
  lends_ = random_word();
  writer_.queue_control({.kind = FrameKind::kReader,
                         .tag = lends_,
                         .offset = reinterpret_cast<std::uint64_t>(&lends_)});
}

void Peer::post_send(Tag tag, PostedSend send) {
  PostedMessages& posted = posted_[tag];
  posted.sends.push_back(std::move(send));
  check_present();
  if (posted.num_credits == 0) return;
  --posted.num_credits;
  take_credit(tag);
}

void Peer::post_recv(Tag tag, PostedRecv recv) {
  posted_[tag].recvs.push_back(std::move(recv));
  check_present();
  writer_.queue_control({.kind = FrameKind::kCredit, .tag = tag});
}

void Peer::tell(Tag tag, const Envelope& note) {
  if (has_said_goodbye_ || is_abandoned_) return;
  writer_.queue_control({.kind = FrameKind::kNote, .tag = tag, .envelope = note});
}

void Peer::write_letter(const Letter& letter) {
  if (has_said_goodbye_ || has_left_ || is_abandoned_) return;
  writer_.queue_control(frame_of(letter), {letter.payload.begin(), letter.payload.end()});
}

void Peer::take_credit(Tag tag) {
  if (domains_.has_failed(tag)) return;
  const auto found = posted_.try_emplace(tag).first;
  PostedMessages& posted = found->second;
  if (posted.sends.empty()) {
    ++posted.num_credits;
    return;
  }
  PostedSend send = std::move(posted.sends.front());
  posted.sends.pop_front();
  if (posted.is_empty()) posted_.erase(found);
  offer_or_write(tag, std::move(send));
}

void Peer::offer_or_write(Tag tag, PostedSend send) {
  const std::size_t bytes = send.data.size();
  if (memory_ && its_ && bytes >= kMinReadBytes) {
    writer_.queue_offer({tag, std::move(send), true});
  } else if (carrier_ != nullptr && carrier_->takes(bytes)) {
    writer_.queue_offer({tag, std::move(send), false});
  } else {
    writer_.queue_message(tag, std::move(send));
  }
}

void Peer::read() {
  if (!socket_.is_open() || is_garbage_) return;
  has_heard_ = true;
  try {
    if (reader_.read(socket_, *this)) return;
  } catch (Error& error) {
    if (has_poisoned_ || has_owner_failed_) throw;  // the cause, as all ranks print it
    if (is_abandoned_) return close();              // a later error: nothing more is to be read
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
  if (frame.kind == FrameKind::kPoison || frame.kind == FrameKind::kFailed ||
      frame.kind == FrameKind::kLetter) {
    payload_.resize(frame.payload_bytes);
    return payload_;
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
    case FrameKind::kOffer:
      if (!is_abandoned_) take_offer(frame);
      return;
    case FrameKind::kAccept:
      if (!is_abandoned_) {
        Offered offered = taken_offer();
        if (offered.is_readable) refuse("an answer to what was not offered");
        PostedSend& send = offered.send;
        carry(offered.tag, send.work);
        carrier_->send(rank_, frame.offset, send.data, std::move(send.work));
      }
      return;
    case FrameKind::kTaken:
      if (!is_abandoned_) taken_offer().send.work->complete();
      return;
    case FrameKind::kReader:
      its_ = {frame.offset, frame.tag};
      return;
    case FrameKind::kFailed:
      failures_.push_back({domain_of(frame.tag), error_from_bytes(payload_)});
      return;
    case FrameKind::kLetter:
      if (!is_abandoned_) take_letter(frame);
      return;
    case FrameKind::kAlive:
      return;
    case FrameKind::kNote:
      return notes_.put(rank_, frame.tag, frame.envelope);
    case FrameKind::kPoison: {
      const Error error = error_from_bytes(payload_);
      has_poisoned_ = true;
      throw Error(error);
    }
    case FrameKind::kGoodbye:
      has_said_goodbye_ = true;
      return notes_.mark_left(rank_);
  }
}

void Peer::check_goodbye() const {
  if (!has_said_goodbye_ || is_abandoned_) return;
  // It has ended its part of what the carrier has under way, and waits for this rank.
  if (has_unmatched()) throw lost_rank(rank_, "it said goodbye with messages under way");
  if (!socket_.is_open() && has_work()) throw lost_rank(rank_, "its connection closed");
  if (matcher_ != nullptr) matcher_->check_left(rank_);
}

void Peer::take_letter(const Frame& frame) {
  if (matcher_ == nullptr) refuse("a letter that nobody takes");
  if (domains_.has_failed(frame.tag)) return;
  const auto error = matcher_->arrive(rank_, letter_of(frame, payload_));
  if (!error) return;
  // Of a domain that has ended here, only the sender may still be in it.
  if (!domains_.contains(frame.tag)) tell_failure(frame.tag, error_to_bytes(*error));
  failures_.push_back({frame.tag, *error});
}

std::span<std::byte> Peer::begin_data(const Frame& frame) {
  if (domains_.has_failed(frame.tag)) return {};
  if (frame.offset == 0) incoming_ = match(frame);
  if (!incoming_ || incoming_->tag != frame.tag || incoming_->num_received != frame.offset ||
      incoming_->message_bytes != frame.message_bytes) {
    refuse("a segment of a message that is not under way");
  }
  if (!incoming_->memory) return {};
  return incoming_->memory->subspan(frame.offset, frame.payload_bytes);
}

/// Takes the oldest recv for the message that `frame` begins, and memory from it.
Peer::Incoming Peer::match(const Frame& frame) {
  if (incoming_ && !failures_.empty()) {  // broken off with its domain, or with a parent of it
    incoming_->work->fail(failures_.back().error);
    incoming_.reset();
  }
  const auto found = posted_.find(frame.tag);
  if (incoming_ || found == posted_.end() || found->second.recvs.empty()) {
    refuse("a message that nobody asked for");
  }
  PostedMessages& posted = found->second;
  Incoming incoming{.tag = frame.tag,
                    .memory = {},
                    .work = nullptr,
                    .message_bytes = frame.message_bytes,
                    .num_received = 0};
  incoming.memory = place(posted.recvs.front(), frame);
  incoming.work = std::move(posted.recvs.front().work);
  posted.recvs.pop_front();
  if (posted.is_empty()) posted_.erase(found);
  return incoming;
}

/// What a domain's recv refuses ends that domain, and is dropped.
std::optional<std::span<std::byte>> Peer::place(const PostedRecv& recv, const Frame& frame) {
  try {
    return place_message(recv, frame.message_bytes, frame.envelope);
  } catch (Error& error) {
    error.add({.peer = rank_});
    has_owner_failed_ = !domains_.contains(frame.tag);
    if (has_owner_failed_) throw;
    failures_.push_back({domain_of(frame.tag), error});
    recv.work->fail(error);
    return std::nullopt;
  }
}

void Peer::carry(Tag tag, const PendingWorkPtr& work) {
  constexpr std::size_t kMany = 64;
  if (carried_.size() >= kMany) {
    std::erase_if(carried_, [](const auto& entry) { return entry.second->is_done(); });
  }
  carried_.emplace_back(tag, work);
}

void Peer::take_offer(const Frame& frame) {
  if (domains_.has_failed(frame.tag)) return writer_.queue_control({.kind = FrameKind::kTaken});
  const bool is_readable = frame.offset != 0;
  const bool can_fetch = is_readable ? memory_ && its_ : carrier_ != nullptr;
  if (!can_fetch) refuse("an offer of what cannot be fetched");
  Incoming incoming = match(frame);
  if (!incoming.memory) {
    writer_.queue_control({.kind = FrameKind::kTaken});
    return incoming.work->complete();
  }
  if (is_readable) return read_offered(std::move(incoming), frame.offset);
  carry(frame.tag, incoming.work);
  const std::uint64_t key = carrier_->receive(rank_, *incoming.memory, std::move(incoming.work));
  writer_.queue_control({.kind = FrameKind::kAccept, .offset = key});
}

/// What went wrong, if anything did.
std::optional<Error> Peer::read_lent(std::uint64_t address, std::span<std::byte> memory) const {
  std::uint64_t word = 0;
  int code = memory_->read(address, memory);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (code == 0) code = memory_->read(its_->address, std::as_writable_bytes(std::span(&word, 1)));
  if (code == ESRCH) return lost_rank(rank_, "its process has ended");
  if (code == 0 && word != its_->word) return lost_rank(rank_, "it has taken back what it sent");
  if (code == 0) return std::nullopt;
  Error error(ErrorKind::kIo, "cannot read a message of " + std::to_string(memory.size()) +
                                  " bytes in the process of rank " + std::to_string(rank_) + ": " +
                                  std::generic_category().message(code));
  return Error(error.add({.peer = rank_}));
}

/// After one that could not be read nothing is answered: answers are to the oldest offer.
void Peer::read_offered(Incoming incoming, std::uint64_t address) {
  if (unread_.empty()) {
    const auto error = read_lent(address, *incoming.memory);
    if (!error) {
      writer_.queue_control({.kind = FrameKind::kTaken});
      return incoming.work->complete();
    }
    trouble_.note(*error);
  }
  unread_.push_back(std::move(incoming.work));
}

/// What the peer answers to.
Offered Peer::taken_offer() {
  std::optional<Offered> offered = writer_.take_offered();
  if (!offered) refuse("an answer to what was not offered");
  return std::move(*offered);
}

void Peer::end_data(const Frame& frame) {
  if (!incoming_ || incoming_->tag != frame.tag) return;  // its domain has failed
  incoming_->num_received += frame.payload_bytes;
  if (incoming_->num_received < frame.message_bytes) return;
  const PendingWorkPtr work = std::move(incoming_->work);
  incoming_.reset();
  work->complete();
}

void Peer::abandon(const std::vector<std::byte>& poison, std::vector<PendingWorkPtr>& works) {
  is_abandoned_ = true;
  lends_ = 0;  // before the works end
  for (auto& [tag, posted] : posted_) take_works(posted, works);
  posted_.clear();
  if (incoming_) works.push_back(std::move(incoming_->work));
  incoming_.reset();
  for (PendingWorkPtr& work : unread_) works.push_back(std::move(work));
  unread_.clear();
  endings_.clear();
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

void Peer::abandon(Tag first_tag, const Error& error, std::vector<PendingWorkPtr>& works) {
  constexpr std::chrono::seconds kPatience{2};
  if (is_abandoned_) return;
  for (auto posted = posted_.begin(); posted != posted_.end();) {
    const bool is_its = domain_of(posted->first) == first_tag;
    if (is_its) take_works(posted->second, works);
    posted = is_its ? posted_.erase(posted) : std::next(posted);
  }
  if (incoming_ && domain_of(incoming_->tag) == first_tag) {
    works.push_back(std::move(incoming_->work));
    incoming_.reset();
    reader_.drop_data(first_tag);
  }
  Ending ending{{}, error, std::chrono::steady_clock::now() + kPatience};
  writer_.abandon(first_tag, works, ending.works);
  for (const auto& [tag, work] : carried_) {
    if (domain_of(tag) == first_tag && !work->is_done()) ending.works.push_back(work);
  }
  if (!ending.works.empty()) endings_.push_back(std::move(ending));
}

void Peer::tell_failure(Tag first_tag, const std::vector<std::byte>& error) {
  if (has_said_goodbye_ || has_left_ || is_abandoned_ || !socket_.is_open()) return;
  writer_.queue_control({.kind = FrameKind::kFailed, .tag = first_tag}, error);
  write();
}

void Peer::note_end_of_process() {
  if (socket_.is_open() && !has_said_goodbye_) {
    // All that it has written is here, or on its way inside the host.
    trouble_.note(lost_rank(rank_, "its process has ended"), std::chrono::milliseconds(200));
  }
}

void Peer::check() {
  if (!has_said_goodbye_ || !unread_.empty()) trouble_.check();
  if (endings_.empty()) return;
  for (Ending& ending : endings_) {
    std::erase_if(ending.works, [](const PendingWorkPtr& work) { return work->is_done(); });
  }
  std::erase_if(endings_, [](const Ending& ending) { return ending.works.empty(); });
  for (const Ending& ending : endings_) {
    if (std::chrono::steady_clock::now() >= ending.until) throw Error(ending.error);
  }
}

Deadline Peer::next_check() const {
  Deadline next = trouble_.due();
  for (const Ending& ending : endings_) next = std::min(next, ending.until);
  return next;
}

void Peer::tell_alive() {
  // A rank that has said goodbye waits for this one's.
  if (is_abandoned_ || has_left_ || !socket_.is_open()) return;
  if (writer_.was_used()) return;
  writer_.queue_control({.kind = FrameKind::kAlive});
}

bool Peer::has_work() const {
  return has_unmatched() || (carrier_ != nullptr && carrier_->has_work(rank_));
}

/// Messages of which the peer has not done its part.
bool Peer::has_unmatched() const {
  const bool is_posted = std::any_of(posted_.begin(), posted_.end(), [](const auto& entry) {
    return !entry.second.sends.empty() || !entry.second.recvs.empty();
  });
  return is_posted || incoming_ || !unread_.empty() || writer_.has_messages();
}

void Peer::check_present() const {
  if (has_said_goodbye_) throw lost_rank(rank_, "it has said goodbye");
}

void Peer::refuse(const std::string& problem) { throw Error(ErrorKind::kCorruptData, problem); }

}  // namespace trireme::transport::internal
