#include "trireme/wire/collectives/call.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "trireme/wire/collectives/members.h"
#include "trireme/wire/endpoint/watch.h"

namespace trireme::collectives {
namespace {

constexpr std::chrono::milliseconds kHearEvery{50};
constexpr std::chrono::milliseconds kResolutionStep{5};

}  // namespace

Call::Call(const Members& members, const Description& description, Scratch& scratch, const Own& own)
    : members_(members),
      description_(description),
      own_bytes_(to_bytes(description, own.scale)),
      patience_(own.deadline.value_or(members.deadline)),
      deadline_(transport::later(patience_)),
      completions_(std::make_shared<transport::Completions>()),
      notes_(members),
      scales_(description.reduce == kernels::ReduceOp::kScaledSum ? members.ranks.size() : 0),
      scratch_(scratch) {
  if (!scales_.empty()) scales_[members.group_rank] = own.scale;
}

void Call::start(Message message, std::size_t id) {
  transport::Work& started = *message.work;
  works_.emplace(id, std::move(message));
  started.tell_end(completions_, id);
}

void Call::send(int peer, std::span<const std::byte> data, std::size_t id) {
  start({members_.endpoint.send(members_.ranks[peer], members_.tag(Use::kOperation), data,
                                own_bytes_),
         peer},
        id);
}

void Call::recv(int peer, std::span<std::byte> memory, std::size_t id) {
  const auto is_own = std::make_shared<bool>();  // shared by two functions that the endpoint has
  transport::Inspection inspect = [this, peer, is_own](const transport::Envelope& envelope) {
    *is_own = this->inspect(peer, envelope);
  };
  transport::Placement place = [memory, is_own](std::size_t) {
    return *is_own ? std::optional(memory) : std::nullopt;  // of another operation: dropped
  };
  start({members_.endpoint.recv(members_.ranks[peer], members_.tag(Use::kOperation),
                                std::move(place), std::move(inspect)),
         peer},
        id);
}

/// On the endpoint's thread. Whether the message is of this operation.
bool Call::inspect(int peer, const transport::Envelope& envelope) {
  if (is_same_call(envelope, own_bytes_)) {
    if (!scales_.empty()) {
      const std::lock_guard lock(mutex_);
      scales_[peer] = scale_in(envelope);
    }
    return true;
  }
  const Description other = parse_description(envelope);
  const std::lock_guard lock(mutex_);
  heard_.insert_or_assign(peer, other);  // it may have told before that it does the same
  return false;
}

std::vector<double> Call::scales() const {
  const std::lock_guard lock(mutex_);
  return scales_;
}

std::vector<std::size_t> Call::take_ended() {
  std::vector<std::size_t> ids = completions_->take(Clock::time_point::min());
  finish(ids);
  return ids;
}

std::vector<std::size_t> Call::wait(const std::vector<int>& awaited) {
  set_awaited(awaited);
  const Clock::time_point begin = Clock::now();
  auto hear_at = begin + WaitNotes::kPatience;
  for (;;) {
    std::vector<std::size_t> ids = completions_->take(std::min(hear_at, deadline_));
    if (!ids.empty()) {
      note_wait(begin, works_.at(ids.back()).peer);
      finish(ids);
      set_awaited({});
      return ids;
    }
    if (Clock::now() >= deadline_) throw late();
    if (Clock::now() < hear_at) continue;
    notes_.tell(own_bytes_);
    other_waits_.tell(members_, to_text(description_.operation), missing());
    hear();
    refuse_if_different();
    refusals_.check(members_, missing(), description_.sequence);
    if (Clock::now() >= begin + kDefinitionPatience) check_definitions(members_, missing());
    hear_at = Clock::now() + kHearEvery;
  }
}

/// Of a process that was stopped the deadline is long over, and others have said why it ends.
Error Call::late() const {
  constexpr std::chrono::milliseconds kNews{100};
  for (const auto limit = Clock::now() + kNews; Clock::now() < limit;) {
    if (const auto failure = members_.failure()->error()) return Error(*failure);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return late_error_with_waits(members_, missing(), patience_);
}

void Call::note_wait(Clock::time_point begin, int peer) {
  const auto time = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin);
  if (longest_wait_.group_rank < 0 || time > longest_wait_.time) longest_wait_ = {peer, time};
}

/// A work that failed throws.
void Call::finish(const std::vector<std::size_t>& ids) {
  for (const std::size_t id : ids) {
    const auto found = works_.find(id);
    found->second.work->wait_for(std::chrono::milliseconds(0));
    works_.erase(found);
  }
  refuse_if_different();
}

bool Call::has_difference() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(heard_,
                             [this](const auto& entry) { return entry.second != description_; });
}

/// Adds what members have told to `heard_`; returns whether it is all of them. A rank that is in an
/// earlier or later operation says nothing about this one.
bool Call::hear() {
  const std::lock_guard lock(mutex_);
  heard_.emplace(members_.group_rank, description_);
  for (int peer = 0; peer < members_.size(); ++peer) {
    if (heard_.contains(peer)) continue;
    const auto told = notes_.told_by(members_.ranks[peer]);
    if (told && told->sequence == description_.sequence) heard_.emplace(peer, *told);
  }
  return std::ssize(heard_) == members_.size();
}

void Call::refuse_if_different() {
  if (!has_difference()) return;
  notes_.tell(own_bytes_);
  const auto limit = Clock::now() + notes_.resolution();
  while (!hear() && Clock::now() < limit) {
    if (const auto error = members_.failure()->error()) throw Error(*error);
    std::this_thread::sleep_for(kResolutionStep);
  }
  refuse();
}

void Call::refuse() const {
  const std::lock_guard lock(mutex_);
  check_same(members_, heard_);
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

/// Whether a rank has told that it waits for others, in this operation or one before.
bool Call::is_waiting(int world_rank) const {
  const auto told = notes_.told_by(world_rank);
  return told && told->sequence <= description_.sequence;
}

std::vector<int> Call::missing() const {
  const std::lock_guard lock(mutex_);
  std::vector<int> silent = awaited_;
  std::erase_if(silent, [this](int rank) { return is_waiting(rank); });
  return silent.empty() ? awaited_ : silent;
}

void Call::drain() noexcept {
  for (const auto& [id, message] : works_) {
    try {
      message.work->wait_for(std::chrono::milliseconds::max());
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
