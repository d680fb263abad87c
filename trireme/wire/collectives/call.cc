#include "trireme/wire/collectives/call.h"

#include <algorithm>
#include <set>
#include <utility>

#include "trireme/wire/transport/watch.h"

namespace trireme::collectives {

using Clock = std::chrono::steady_clock;

Call::Call(const Members& members, const Description& description, Scratch& scratch)
    : members_(members),
      description_(description),
      deadline_(Clock::now() + members.deadline),
      own_bytes_(to_bytes(description)),
      peer_bytes_(members.size()),
      scratch_(scratch) {}

std::vector<int> Call::peers() const {
  std::vector<int> result;
  for (int i = 1; i < members_.size(); ++i) {
    result.push_back((members_.group_rank + i) % members_.size());
  }
  return result;
}

void Call::add(Transfer transfer) {
  const std::lock_guard lock(mutex_);
  transfers_.push_back(std::move(transfer));
}

void Call::send(int peer, Hop hop, std::span<const std::byte> data) {
  if (data.empty()) return;
  add({peer, hop, false, members_.endpoint.send(members_.ranks[peer], members_.tag(hop), data)});
}

void Call::recv(int peer, Hop hop, std::span<std::byte> memory) {
  if (memory.empty()) return;
  transport::Placement place = [memory](std::size_t) { return memory; };
  add({peer, hop, true,
       members_.endpoint.recv(members_.ranks[peer], members_.tag(hop), std::move(place))});
}

void Call::agree() {
  for (const int peer : peers()) recv(peer, Hop::kDescription, peer_bytes_[peer]);
  for (const int peer : peers()) send(peer, Hop::kDescription, own_bytes_);
  wait_where([](const Transfer& transfer) { return transfer.hop == Hop::kDescription; });
  peer_bytes_[members_.group_rank] = own_bytes_;
  std::vector<Description> descriptions;
  for (const auto& bytes : peer_bytes_) descriptions.push_back(parse_description(bytes));
  check_same(members_, descriptions);
}

void Call::wait_recvs(int peer, Hop hop) {
  wait_where([&](const Transfer& transfer) {
    return transfer.is_recv && transfer.peer == peer && transfer.hop == hop;
  });
}

void Call::wait_all() {
  wait_where([](const Transfer&) { return true; });
}

template <typename Predicate>
void Call::wait_where(Predicate is_meant) {
  {
    const std::lock_guard lock(mutex_);
    for (Transfer& transfer : transfers_) transfer.is_awaited = is_meant(transfer);
  }
  std::set<int> late;
  for (const Transfer& transfer : transfers_) {
    if (!transfer.is_awaited) continue;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now());
    if (!transfer.work->wait_for(std::max(left, std::chrono::milliseconds(0)))) {
      late.insert(members_.ranks[transfer.peer]);
    }
  }
  if (!late.empty()) throw late_error(std::vector(late.begin(), late.end()), members_.deadline);
  const std::lock_guard lock(mutex_);
  std::erase_if(transfers_, [](const Transfer& transfer) { return transfer.is_awaited; });
}

std::vector<int> Call::missing() const {
  const std::lock_guard lock(mutex_);
  std::set<int> ranks;
  for (const Transfer& transfer : transfers_) {
    if (transfer.is_awaited && !transfer.work->is_done()) {
      ranks.insert(members_.ranks[transfer.peer]);
    }
  }
  return {ranks.begin(), ranks.end()};
}

void Call::drain() noexcept {
  for (const Transfer& transfer : transfers_) {
    try {
      transfer.work->wait_for(std::chrono::milliseconds::max());
    } catch (const Error&) {  // the group has the first error already
      continue;
    }
  }
  const std::lock_guard lock(mutex_);
  transfers_.clear();
}

ErrorContext Call::context() const {
  return {.rank = members_.ranks[members_.group_rank],
          .group = members_.name,
          .operation = std::string(to_text(description_.operation)),
          .sequence = description_.sequence};
}

}  // namespace trireme::collectives
