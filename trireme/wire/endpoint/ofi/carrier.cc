#include "trireme/wire/endpoint/ofi/carrier.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <string>
#include <utility>

namespace trireme::transport::internal {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

// How soon what could not be posted is tried again: connections are made on first use.
constexpr milliseconds kRetryAfter{1};

// Where nothing tells that there is progress to be made: at once while pieces end, then less often,
// and seldom while there is no payload, so that a provider can answer what its peers ask.
constexpr microseconds kBusy{200};
constexpr milliseconds kWaiting{1};
constexpr milliseconds kIdle{20};

std::uint64_t random_key() {
  std::random_device device;
  return static_cast<std::uint64_t>(device()) << 32 | device();
}

template <typename Byte>
std::span<Byte> piece_of(std::span<Byte> payload, std::size_t index, std::size_t max_bytes) {
  const std::span<Byte> rest = payload.subspan(index * max_bytes);
  return rest.first(std::min(rest.size(), max_bytes));
}

}  // namespace

OfiCarrier::OfiCarrier(std::unique_ptr<Fabric> fabric, const CarrierOptions& options)
    : fabric_(std::move(fabric)), options_(options), last_move_(Clock::now()) {}

std::uint64_t OfiCarrier::receive(int peer, std::span<std::byte> memory, PendingWorkPtr work) {
  const std::uint64_t key = random_key();
  start({.peer = peer, .key = key, .sent = {}, .received = memory, .work = std::move(work)});
  return key;
}

void OfiCarrier::send(int peer, std::uint64_t key, std::span<const std::byte> data,
                      PendingWorkPtr work) {
  start({.peer = peer, .key = key, .sent = data, .received = {}, .work = std::move(work)});
}

void OfiCarrier::start(Transfer transfer) {
  const std::size_t size = transfer.sent.size() + transfer.received.size();
  transfer.num_pieces = (size + options_.max_piece_bytes - 1) / options_.max_piece_bytes;
  transfer.last_posted = last_move_ = Clock::now();
  transfers_.push_back(std::move(transfer));
  post(transfers_.back());
}

void OfiCarrier::post(Transfer& transfer) {
  try {
    while (transfer.num_posted < transfer.num_pieces) {
      if (!post_piece(transfer)) break;
      ++transfer.num_posted;
      transfer.last_posted = Clock::now();
    }
  } catch (const Error& error) {
    return give_up(transfer, error.message());
  }
  if (transfer.num_posted == transfer.num_pieces) return;
  if (Clock::now() < transfer.last_posted + options_.patience) return;
  give_up(transfer, "libfabric has taken nothing for it for " +
                        std::to_string(options_.patience.count()) + " ms");
}

void OfiCarrier::give_up(Transfer& transfer, const std::string& why) {
  transfer.num_posted = transfer.num_pieces;  // not tried again; it never ends
  trouble_.note(lost_rank(transfer.peer, why));
}

/// Whether the provider has taken it.
bool OfiCarrier::post_piece(Transfer& transfer) {
  const std::size_t index = transfer.num_posted;
  const std::uint64_t tag = transfer.key + index;
  if (transfer.sent.empty()) {
    const auto piece = piece_of(transfer.received, index, options_.max_piece_bytes);
    return fabric_->post_recv(tag, piece, &transfer);
  }
  const auto piece = piece_of(transfer.sent, index, options_.max_piece_bytes);
  return fabric_->post_send(transfer.peer, tag, piece, &transfer);
}

void OfiCarrier::progress() {
  if (!fabric_) return;
  fabric_->progress([this](const Fabric::Completion& completion) { end_piece(completion); });
  for (Transfer& transfer : transfers_) post(transfer);
  trouble_.check();
}

void OfiCarrier::end_piece(const Fabric::Completion& completion) {
  auto* transfer = static_cast<Transfer*>(completion.context);
  if (!completion.problem.empty()) {
    return trouble_.note(transfer == nullptr ? Error(ErrorKind::kIo, completion.problem)
                                             : lost_rank(transfer->peer, completion.problem));
  }
  last_move_ = Clock::now();
  transfer->num_bytes += completion.num_bytes;
  if (++transfer->num_ended == transfer->num_pieces) end(*transfer);
}

void OfiCarrier::end(Transfer& transfer) {
  if (transfer.sent.empty() && transfer.num_bytes != transfer.received.size()) {
    Error error(ErrorKind::kCorruptData, "rank " + std::to_string(transfer.peer) + " sent " +
                                             std::to_string(transfer.num_bytes) + " of " +
                                             std::to_string(transfer.received.size()) + " bytes");
    throw Error(error.add({.peer = transfer.peer}));
  }
  const PendingWorkPtr work = std::move(transfer.work);
  transfers_.remove_if([&](const Transfer& other) { return &other == &transfer; });
  work->complete();
}

bool OfiCarrier::has_work(int peer) const {
  return std::any_of(transfers_.begin(), transfers_.end(),
                     [peer](const Transfer& transfer) { return transfer.peer == peer; });
}

bool OfiCarrier::has_unposted() const {
  return std::any_of(transfers_.begin(), transfers_.end(), [](const Transfer& transfer) {
    return transfer.num_posted < transfer.num_pieces;
  });
}

const Descriptor& OfiCarrier::descriptor() const { return fabric_ ? fabric_->descriptor() : none_; }

Deadline OfiCarrier::next_progress() {
  if (!fabric_) return Deadline::max();
  const Deadline now = Clock::now();
  Deadline next = trouble_.due();
  if (has_unposted()) next = std::min(next, now + kRetryAfter);
  if (fabric_->descriptor().is_open()) return fabric_->may_wait() ? next : now;
  if (transfers_.empty()) return std::min(next, now + kIdle);
  return now < last_move_ + kBusy ? now : std::min(next, now + kWaiting);
}

void OfiCarrier::abandon(std::vector<PendingWorkPtr>& works) {
  // What is left open is closed with this object, when the others know of the failure: a peer that
  // is at work may not survive the end of a connection (fabric.cc). Memory is let go of in any
  // case.
  if (fabric_ && !fabric_->settle()) fabric_.reset();
  for (Transfer& transfer : transfers_) works.push_back(std::move(transfer.work));
  transfers_.clear();
}

}  // namespace trireme::transport::internal
