// TcpEndpoint as Messages, and as where their letters and payloads go.

#include <memory>
#include <utility>

#include "trireme/wire/endpoint/tcp/endpoint.h"

namespace trireme::transport::internal {

// ---- Any thread

WorkPtr TcpEndpoint::send(const MessageToSend& message) {
  return post_work(message.peer, message.domain, [this, message](const PendingWorkPtr& work) {
    matcher_.post_send(message, work);
  });
}

RecvWorkPtr TcpEndpoint::recv(const MessageToReceive& message) {
  if (message.source != kAnySource) check_peer(message.source, *this);
  auto work = std::make_shared<RecvWork>(failure_);
  start_work(work, message.domain, [this, message, work] {
    if (const auto error = matcher_.post_recv(message, work)) fail_domain(message.domain, *error);
  });
  return work;
}

bool TcpEndpoint::cancel(const RecvWorkPtr& work) {
  bool is_cancelled = false;
  run_on_loop([&] { is_cancelled = matcher_.cancel(*work); });
  return is_cancelled;
}

std::vector<WaitingMessage> TcpEndpoint::waiting(Tag domain) {
  std::vector<WaitingMessage> messages;
  run_on_loop([&] { messages = matcher_.waiting(domain); });
  return messages;
}

/// Those that are left in it hear it before this rank says goodbye.
void TcpEndpoint::close(Tag first_tag) {
  const bool is_posted = poller_.post([this, first_tag] {
    attempt([&] {
      const auto error = matcher_.close(first_tag);
      if (error && !over_) fail_domain(first_tag, *error);
    });
    domains_.close(first_tag);
  });
  if (!is_posted) domains_.close(first_tag);
}

// ---- The progress thread

void TcpEndpoint::write_letter(int peer, const Letter& letter) {
  if (peer != rank_) return peers_.at(peer).write_letter(letter);
  std::vector<std::byte> payload(letter.payload.begin(), letter.payload.end());
  poller_.post([this, letter = letter, payload = std::move(payload)]() mutable {
    letter.payload = payload;
    attempt([&] {
      if (over_ || domains_.has_failed(letter.domain)) return;
      if (const auto error = matcher_.arrive(rank_, letter)) fail_domain(letter.domain, *error);
    });
  });
}

void TcpEndpoint::send_payload(int peer, Tag tag, PostedSend send) {
  if (peer != rank_) return peers_.at(peer).post_send(tag, std::move(send));
  to_self_[tag].sends.push_back(std::move(send));
  send_to_self(tag);
}

void TcpEndpoint::recv_payload(int peer, Tag tag, PostedRecv recv) {
  if (peer != rank_) return peers_.at(peer).post_recv(tag, std::move(recv));
  to_self_[tag].recvs.push_back(std::move(recv));
  send_to_self(tag);
}

bool TcpEndpoint::has_gone(int peer) const {
  return peer != rank_ && peers_.at(peer).has_said_goodbye();
}

}  // namespace trireme::transport::internal
