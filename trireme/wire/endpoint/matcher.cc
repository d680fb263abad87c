#include "trireme/wire/endpoint/matcher.h"

#include <algorithm>
#include <string>
#include <utility>

namespace trireme::transport {

void check_peer(int peer, const Endpoint& endpoint) {
  if (peer >= 0 && peer < endpoint.world_size()) return;
  Error error(ErrorKind::kInvalidArgument, "there is no rank " + std::to_string(peer) +
                                               " in a world of " +
                                               std::to_string(endpoint.world_size()) + " ranks");
  error.add({.rank = endpoint.rank(), .peer = peer});
  throw error;
}

Error missing_goodbyes(int rank, const std::vector<int>& missing,
                       std::chrono::milliseconds deadline) {
  Error error(ErrorKind::kTimeout, "no goodbye from " + ranks_text(missing) + " within " +
                                       std::to_string(deadline.count()) +
                                       " ms; are they still at work?");
  error.add({.rank = rank, .operation = "shutdown"});
  return error;
}

std::optional<std::span<std::byte>> place_message(const PostedRecv& recv, std::size_t bytes,
                                                  const Envelope& envelope) {
  std::optional<std::span<std::byte>> memory;
  try {
    if (recv.inspect) recv.inspect(envelope);
    memory = recv.place(bytes);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(ErrorKind::kResourceExhausted,
                "no memory for a message of " + std::to_string(bytes) + " bytes", error);
  }
  if (memory && memory->size() != bytes) {
    throw Error(ErrorKind::kInvalidArgument, "a message has " + std::to_string(bytes) +
                                                 " bytes, its recv gave memory for " +
                                                 std::to_string(memory->size()));
  }
  return memory;
}

void deliver(const PostedSend& send, const PostedRecv& recv) {
  const auto memory = place_message(recv, send.data.size(), send.envelope);
  if (memory) std::copy(send.data.begin(), send.data.end(), memory->begin());
  send.work->complete();
  recv.work->complete();
}

void take_works(PostedMessages& posted, std::vector<PendingWorkPtr>& works) {
  for (PostedSend& send : posted.sends) works.push_back(std::move(send.work));
  for (PostedRecv& recv : posted.recvs) works.push_back(std::move(recv.work));
  posted = {};
}

}  // namespace trireme::transport

namespace trireme::transport::internal {
namespace {

std::string text_of(const MessageLabel& label, std::size_t bytes) {
  const auto end = std::ranges::find(label.type, '\0');
  return std::to_string(bytes) + " bytes of " + std::string(label.type.begin(), end);
}

std::string from_text(int source, const MessageLabel& label) {
  return "rank " + std::to_string(source) + " with tag " + std::to_string(label.tag);
}

Error other_message(const MessageToReceive& recv, const WaitingMessage& message) {
  Error error(ErrorKind::kInvalidArgument,
              "a message of " + from_text(message.source, message.label) + " has " +
                  text_of(message.label, message.bytes) + ", its recv gave memory for " +
                  (recv.may_be_shorter ? "at most " : "") +
                  text_of(recv.label, recv.memory.size()) +
                  "; both sides say the same type and size, or the recv takes shorter ones too");
  return Error(error.add({.peer = message.source}));
}

Error lost(int peer) { return lost_rank(peer, "it said goodbye with messages under way"); }

}  // namespace

// ---- Sends

void Matcher::post_send(const MessageToSend& message, PendingWorkPtr work) {
  if (link_.has_gone(message.peer)) throw lost_rank(message.peer, "it has said goodbye");
  Outbox& outbox = boxes_[message.domain].to[message.peer];
  outbox.kept.push_back({message.label, {message.data, {}, std::move(work)}});
  write(message.domain, message.peer, outbox);
}

/// What is kept and allowed.
void Matcher::write(Tag domain, int peer, Outbox& outbox) {
  while (!outbox.kept.empty() && outbox.num_allowed > 0) {
    const Send send = std::move(outbox.kept.front());
    outbox.kept.pop_front();
    --outbox.num_allowed;
    const std::span<const std::byte> data = send.posted.data;
    Letter letter{.domain = domain, .label = send.label, .bytes = data.size()};
    if (data.size() <= Messages::kMaxEager) {
      letter.payload = data;
      link_.write_letter(peer, letter);
      send.posted.work->complete();
    } else {
      letter.kind = Letter::Kind::kAnnouncement;
      letter.number = outbox.next_number++;
      outbox.announced.emplace(letter.number, send.posted);
      link_.write_letter(peer, letter);
    }
  }
}

void Matcher::take_grant(int peer, const Letter& letter) {
  auto granted = boxes_[letter.domain].to[peer].announced.extract(letter.number);
  if (!granted) throw Error(ErrorKind::kCorruptData, "a grant of what was not announced");
  link_.send_payload(peer, payload_tag(letter.domain), std::move(granted.mapped()));
}

void Matcher::take_allowance(int peer, const Letter& letter) {
  Outbox& outbox = boxes_[letter.domain].to[peer];
  if (letter.number > Messages::kMaxWaiting - outbox.num_allowed) {
    throw Error(ErrorKind::kCorruptData, "an allowance for more letters than were written");
  }
  outbox.num_allowed += letter.number;
  write(letter.domain, peer, outbox);
}

// ---- Recvs

bool Matcher::fits(const MessageToReceive& recv, const WaitingMessage& message) {
  return recv.label.tag == message.label.tag &&
         (recv.source == kAnySource || recv.source == message.source);
}

std::optional<Error> Matcher::post_recv(const MessageToReceive& message, RecvWorkPtr work) {
  Box& box = boxes_[message.domain];
  const Recv recv{message, std::move(work)};
  const auto found = std::ranges::find_if(
      box.arrivals, [&](const Arrival& arrival) { return fits(message, arrival.message); });
  if (found != box.arrivals.end()) {
    const Arrival arrival = std::move(*found);
    box.arrivals.erase(found);
    --box.from[arrival.message.source].num_waiting;
    return match(message.domain, recv, arrival);
  }
  check_present(message);
  box.recvs.push_back(recv);
  return std::nullopt;
}

/// Somebody is left who could send it.
void Matcher::check_present(const MessageToReceive& message) const {
  const bool is_any = message.source == kAnySource;
  if (!(is_any ? are_all_gone(message.domain) : link_.has_gone(message.source))) return;
  const std::vector<int> ranks = domains_.ranks_of(message.domain);
  const int lost = !is_any ? message.source : ranks[0] == rank_ ? ranks[1] : ranks[0];
  throw lost_rank(lost, "it has said goodbye");
}

std::optional<Error> Matcher::arrive(int peer, const Letter& letter) {
  const bool is_message =
      letter.kind == Letter::Kind::kMessage || letter.kind == Letter::Kind::kAnnouncement;
  if (closed_.contains(letter.domain)) {
    if (!is_message) return std::nullopt;
    return Error(ErrorKind::kInvalidArgument,
                 "rank " + std::to_string(rank_) +
                     " has ended its group before it received a message of " +
                     from_text(peer, letter.label));
  }
  if (is_message) return take_message(peer, letter);
  letter.kind == Letter::Kind::kGrant ? take_grant(peer, letter) : take_allowance(peer, letter);
  return std::nullopt;
}

std::optional<Error> Matcher::take_message(int peer, const Letter& letter) {
  const bool is_small = letter.bytes <= Messages::kMaxEager;
  if (is_small != (letter.kind == Letter::Kind::kMessage) ||
      letter.payload.size() != (is_small ? letter.bytes : 0)) {
    throw Error(ErrorKind::kCorruptData, "a message that is not of the size that it says");
  }
  Box& box = boxes_[letter.domain];
  Arrival arrival{.message = {peer, letter.label, letter.bytes},
                  .number = is_small ? std::nullopt : std::optional(letter.number),
                  .payload = letter.payload,
                  .kept = {}};
  const auto found = std::ranges::find_if(
      box.recvs, [&](const Recv& recv) { return fits(recv.message, arrival.message); });
  if (found == box.recvs.end()) {
    Inbox& inbox = box.from[peer];
    if (++inbox.num_waiting > Messages::kMaxWaiting) {
      throw Error(ErrorKind::kCorruptData, "more messages than are allowed to wait");
    }
    arrival.kept.assign(letter.payload.begin(), letter.payload.end());
    arrival.payload = arrival.kept;  // moves with it
    box.arrivals.push_back(std::move(arrival));
    return std::nullopt;
  }
  const Recv recv = *found;
  box.recvs.erase(found);
  return match(letter.domain, recv, arrival);
}

/// Neither is kept any more.
std::optional<Error> Matcher::match(Tag domain, const Recv& recv, const Arrival& arrival) {
  const WaitingMessage& message = arrival.message;
  const std::size_t room = recv.message.memory.size();
  const bool has_room = recv.message.may_be_shorter ? message.bytes <= room : message.bytes == room;
  if (!has_room || message.label.type != recv.message.label.type) {
    Error error = other_message(recv.message, message);
    error.add({.rank = rank_});
    recv.work->fail(error);
    return error;
  }
  recv.work->set_received({message.source, message.bytes});
  if (arrival.number) {
    await_payload(domain, recv, arrival);
  } else {
    std::ranges::copy(arrival.payload, recv.message.memory.begin());
    recv.work->complete();
  }
  count_taken(domain, message.source);
  return std::nullopt;
}

/// The recv is posted before the sender hears of it: payloads come in the order of the grants.
void Matcher::await_payload(Tag domain, const Recv& recv, const Arrival& arrival) {
  const auto memory = recv.message.memory.first(arrival.message.bytes);
  const int source = arrival.message.source;
  link_.recv_payload(
      source, payload_tag(domain),
      {.place = [memory](std::size_t) { return memory; }, .inspect = nullptr, .work = recv.work});
  link_.write_letter(source,
                     {.kind = Letter::Kind::kGrant, .domain = domain, .number = *arrival.number});
}

void Matcher::count_taken(Tag domain, int peer) {
  std::size_t& num_taken = boxes_[domain].from[peer].num_taken;
  if (++num_taken < Messages::kMaxWaiting / 2) return;
  link_.write_letter(
      peer,
      {.kind = Letter::Kind::kAllowance, .domain = domain, .number = std::exchange(num_taken, 0)});
}

bool Matcher::cancel(const RecvWork& work) {
  for (auto& [domain, box] : boxes_) {
    const auto found = std::ranges::find_if(
        box.recvs, [&work](const Recv& recv) { return recv.work.get() == &work; });
    if (found == box.recvs.end()) continue;
    found->work->fail(Error(ErrorKind::kCancelled, "the recv was withdrawn before a message came"));
    box.recvs.erase(found);
    return true;
  }
  return false;
}

std::vector<WaitingMessage> Matcher::waiting(Tag domain) const {
  std::vector<WaitingMessage> messages;
  const auto found = boxes_.find(domain);
  if (found == boxes_.end()) return messages;
  for (const Arrival& arrival : found->second.arrivals) messages.push_back(arrival.message);
  return messages;
}

// ---- Ends

std::optional<Error> Matcher::close(Tag domain) {
  closed_.insert(domain);
  const auto box = boxes_.extract(domain);
  if (!box) return std::nullopt;
  std::vector<PendingWorkPtr> works;
  take_works(box.mapped(), works);
  const std::deque<Arrival>& arrivals = box.mapped().arrivals;
  if (works.empty() && arrivals.empty()) return std::nullopt;
  const std::string what = arrivals.empty() ? "with sends or recvs under way"
                                            : "with a message that it has not received, of " +
                                                  from_text(arrivals.front().message.source,
                                                            arrivals.front().message.label);
  const Error error(ErrorKind::kInvalidArgument,
                    "rank " + std::to_string(rank_) + " has ended its group " + what);
  for (const PendingWorkPtr& work : works) work->fail(error);
  return error;
}

void Matcher::check_left(int peer) const {
  for (const auto& [domain, box] : boxes_) {
    if (is_waited_for(peer, domain, box)) throw lost(peer);
  }
}

bool Matcher::is_waited_for(int peer, Tag domain, const Box& box) const {
  const auto outbox = box.to.find(peer);
  if (outbox != box.to.end() &&
      (!outbox->second.kept.empty() || !outbox->second.announced.empty())) {
    return true;
  }
  const bool is_last = are_all_gone(domain);
  return std::ranges::any_of(box.recvs, [peer, is_last](const Recv& recv) {
    return recv.message.source == peer || (recv.message.source == kAnySource && is_last);
  });
}

/// The other ranks of a domain, of which there are some.
bool Matcher::are_all_gone(Tag domain) const {
  const std::vector<int> ranks = domains_.ranks_of(domain);
  return ranks.size() > 1 && std::ranges::all_of(ranks, [this](int rank) {
           return rank == rank_ || link_.has_gone(rank);
         });
}

bool Matcher::has_work() const {
  return std::ranges::any_of(boxes_, [](const auto& entry) {
    const Box& box = entry.second;
    return !box.recvs.empty() || std::ranges::any_of(box.to, [](const auto& to) {
      return !to.second.kept.empty() || !to.second.announced.empty();
    });
  });
}

void Matcher::take_works(Box& box, std::vector<PendingWorkPtr>& works) {
  for (Recv& recv : box.recvs) works.push_back(std::move(recv.work));
  for (auto& [peer, outbox] : box.to) {
    for (Send& send : outbox.kept) works.push_back(std::move(send.posted.work));
    for (auto& [number, send] : outbox.announced) works.push_back(std::move(send.work));
  }
}

void Matcher::abandon(Tag domain, std::vector<PendingWorkPtr>& works) {
  const auto box = boxes_.extract(domain);
  if (box) take_works(box.mapped(), works);
}

void Matcher::abandon(std::vector<PendingWorkPtr>& works) {
  for (auto& [domain, box] : boxes_) take_works(box, works);
  boxes_.clear();
}

}  // namespace trireme::transport::internal
