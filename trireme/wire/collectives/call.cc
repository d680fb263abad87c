#include "trireme/wire/collectives/call.h"

#include <algorithm>
#include <utility>

#include "trireme/wire/transport/watch.h"

namespace trireme::collectives {
namespace {

constexpr std::chrono::milliseconds kPatience{200};  // before the others are asked what they do
constexpr std::chrono::milliseconds kHearEvery{50};

}  // namespace

Call::Call(const Members& members, const Description& description, Scratch& scratch)
    : members_(members),
      description_(description),
      own_bytes_(to_bytes(description)),
      deadline_(Clock::now() + members.deadline),
      completions_(std::make_shared<transport::Completions>()),
      scratch_(scratch) {}

transport::Tag Call::tag() const {
  constexpr transport::Tag kGroups = transport::Tag{1} << 63;  // apart from other users' tags
  return kGroups | members_.id;
}

void Call::start(transport::WorkPtr work, std::size_t id) {
  transport::Work& started = *work;
  works_.emplace(id, std::move(work));
  started.tell_end(completions_, id);
}

void Call::send(int peer, std::span<const std::byte> data, std::size_t id) {
  start(members_.endpoint.send(members_.ranks[peer], tag(), data, own_bytes_), id);
}

void Call::recv(int peer, std::span<std::byte> memory, std::size_t id) {
  transport::Placement place = [memory](std::size_t) { return memory; };
  transport::Inspection inspect = [this, peer](const transport::Envelope& envelope) {
    this->inspect(peer, envelope);
  };
  start(members_.endpoint.recv(members_.ranks[peer], tag(), std::move(place), std::move(inspect)),
        id);
}

void Call::inspect(int peer, const transport::Envelope& envelope) const {
  if (envelope != own_bytes_) refuse(peer, parse_description(envelope));
}

void Call::refuse(int peer, const Description& other) const {
  const int own_rank = members_.ranks[members_.group_rank];
  const int peer_rank = members_.ranks[peer];
  Error error(ErrorKind::kInvalidArgument,
              "group " + members_.name + ": " +
                  (members_.group_rank < peer
                       ? difference_text(own_rank, description_, peer_rank, other)
                       : difference_text(peer_rank, other, own_rank, description_)));
  throw Error(error.add(context()));
}

std::vector<std::size_t> Call::take_ended() {
  std::vector<std::size_t> ids = completions_->take(Clock::time_point::min());
  finish(ids);
  return ids;
}

std::vector<std::size_t> Call::wait(const std::vector<int>& awaited) {
  set_awaited(awaited);
  auto hear_at = Clock::now() + kPatience;
  for (;;) {
    std::vector<std::size_t> ids = completions_->take(std::min(hear_at, deadline_));
    if (!ids.empty()) {
      finish(ids);
      set_awaited({});
      return ids;
    }
    if (Clock::now() >= deadline_) throw late_error();
    if (Clock::now() < hear_at) continue;
    tell_and_hear();
    hear_at = Clock::now() + kHearEvery;
  }
}

/// A work that failed throws.
void Call::finish(const std::vector<std::size_t>& ids) {
  for (const std::size_t id : ids) {
    const auto found = works_.find(id);
    found->second->wait_for(std::chrono::milliseconds(0));
    works_.erase(found);
  }
}

/// A rank that is in an earlier or later operation says nothing about this one.
void Call::tell_and_hear() {
  transport::Notes& notes = members_.endpoint.notes();
  for (int peer = 0; peer < members_.size(); ++peer) {
    if (peer == members_.group_rank) continue;
    if (!has_told_) notes.tell(members_.ranks[peer], tag(), own_bytes_);
    const auto heard = notes.heard(members_.ranks[peer], tag());
    if (!heard || *heard == own_bytes_) continue;
    const Description other = parse_description(*heard);
    if (other.sequence == description_.sequence) refuse(peer, other);
  }
  has_told_ = true;
}

void Call::set_awaited(const std::vector<int>& peers) {
  std::vector<int> ranks;
  for (const int peer : peers) ranks.push_back(members_.ranks[peer]);
  std::ranges::sort(ranks);
  const auto repeated = std::ranges::unique(ranks);
  ranks.erase(repeated.begin(), repeated.end());
  const std::lock_guard lock(mutex_);
  awaited_ = std::move(ranks);
}

Error Call::late_error() const {
  const std::vector<int> ranks = missing();
  Error error(ErrorKind::kTimeout, "waited " + std::to_string(members_.deadline.count()) +
                                       " ms for " + transport::ranks_text(ranks) +
                                       "; have they failed, or do they call something else?");
  if (!ranks.empty()) error.add({.peer = ranks.front()});
  return error;
}

std::vector<int> Call::missing() const {
  const std::lock_guard lock(mutex_);
  return awaited_;
}

void Call::drain() noexcept {
  for (const auto& [id, work] : works_) {
    try {
      work->wait_for(std::chrono::milliseconds::max());
    } catch (const Error&) {  // the group has the first error already
      continue;
    }
  }
  works_.clear();
}

ErrorContext Call::context() const {
  return {.rank = members_.ranks[members_.group_rank],
          .group = members_.name,
          .operation = std::string(to_text(description_.operation)),
          .sequence = description_.sequence};
}

}  // namespace trireme::collectives
