// SimNetwork's part in messages of domains (messages.h): letters that fly.

#include <algorithm>
#include <utility>

#include "trireme/wire/transport/sim/network.h"

namespace trireme::transport::internal {

// ---- Any thread

WorkPtr SimNetwork::send(int rank, const MessageToSend& message) {
  auto work = std::make_shared<PendingWork>(failure_);
  loop_.post([this, rank, message, work] {
    if (!admit(rank, message.domain, work)) return;
    attempt([&] { ranks_[rank].matcher.post_send(message, work); }, work);
  });
  return work;
}

RecvWorkPtr SimNetwork::recv(int rank, const MessageToReceive& message) {
  auto work = std::make_shared<RecvWork>(failure_);
  loop_.post([this, rank, message, work] {
    if (!admit(rank, message.domain, work)) return;
    attempt(
        [&] {
          const auto error = ranks_[rank].matcher.post_recv(message, work);
          if (error) fail_now(message.domain, *error);
        },
        work);
  });
  return work;
}

bool SimNetwork::cancel(int rank, const RecvWorkPtr& work) {
  bool is_cancelled = false;
  loop_.run([&] { is_cancelled = ranks_[rank].matcher.cancel(*work); });
  return is_cancelled;
}

std::vector<WaitingMessage> SimNetwork::waiting(int rank, Tag domain) {
  std::vector<WaitingMessage> messages;
  loop_.run([&] { messages = ranks_[rank].matcher.waiting(domain); });
  return messages;
}

void SimNetwork::close(int rank, Tag first_tag) {
  loop_.post([this, rank, first_tag] {
    const auto error = ranks_[rank].matcher.close(first_tag);
    if (error) fail_now(first_tag, *error);
    domains_[rank].close(first_tag);
  });
}

// ---- The loop

/// Its domain's failure comes first: that the world has ended may follow from it.
bool SimNetwork::admit(int rank, Tag tag, const PendingWorkPtr& work) {
  auto error = domains_[rank].failure_of(tag);
  if (!error) error = failure_->error();
  if (error) work->fail(*error);
  return !error;
}

/// work   of the step, which may have been kept nowhere yet; may be null.
void SimNetwork::attempt(const std::function<void()>& step, const PendingWorkPtr& work) {
  try {
    step();
  } catch (const Error& error) {
    fail_now(error);
    if (work) work->fail(*failure_->error());
  }
}

bool SimNetwork::has_flying_letters(int rank) const {
  return std::any_of(letters_.begin(), letters_.end(), [rank](const auto& entry) {
    return (entry.first.from == rank || entry.first.to == rank) && !entry.second.empty();
  });
}

void SimNetwork::Rank::write_letter(int peer, const Letter& letter) {
  const bool is_message =
      letter.kind == Letter::Kind::kMessage || letter.kind == Letter::Kind::kAnnouncement;
  const LetterRoute route{rank_, peer, letter.domain, !is_message, letter.label.tag};
  network_.letters_[route].push_back({letter, {letter.payload.begin(), letter.payload.end()}});
  network_.loop_.post([network = &network_, route] { network->arrive(route); },
                      network_.flight_time());
}

void SimNetwork::arrive(const LetterRoute& route) {
  const auto found = letters_.find(route);
  if (found == letters_.end()) return;  // the world has failed meanwhile
  FlyingLetter flying = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) letters_.erase(found);
  if (domains_[route.to].has_failed(route.domain)) return;
  flying.letter.payload = flying.payload;
  attempt([&] {
    const auto error = ranks_[route.to].matcher.arrive(route.from, flying.letter);
    if (error) fail_now(route.domain, *error);
  });
}

void SimNetwork::Rank::send_payload(int peer, Tag tag, PostedSend send) {
  const Route route{rank_, peer, tag};
  network_.traffic_[route].posted.sends.push_back(std::move(send));
  network_.match(route);
}

void SimNetwork::Rank::recv_payload(int peer, Tag tag, PostedRecv recv) {
  const Route route{peer, rank_, tag};
  network_.traffic_[route].posted.recvs.push_back(std::move(recv));
  network_.match(route);
}

}  // namespace trireme::transport::internal
