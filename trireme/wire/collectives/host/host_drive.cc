// Going on with the first operation of the queue, by whoever has time.

#include <algorithm>
#include <utility>

#include "trireme/error.h"
#include "trireme/wire/collectives/host/arena.h"
#include "trireme/wire/collectives/host/host_queue.h"
#include "trireme/wire/collectives/members.h"
#include "trireme/wire/collectives/waits.h"

namespace trireme::collectives {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

// To be woken for every operation would cost more than a small one, and most callers wait at once:
// so, while operations come, the thread looks after short naps whether one is left alone.
constexpr microseconds kNap{1000};
constexpr milliseconds kNapping{20};
constexpr milliseconds kIdle{500};  // between looks for one that is left alone until its deadline

}  // namespace

void HostQueue::serve() {
  Lock lock(mutex_);
  while (!is_closing_) {
    if (wants_thread() || is_overdue()) {
      drive(lock, nullptr, Time::max());
    } else if (Clock::now() < last_submit_ + kNapping) {
      is_napping_ = true;
      wanted_.wait_for(lock, kNap);
      is_napping_ = false;
    } else {
      wanted_.wait_for(lock, kIdle);
    }
  }
}

/// An operation that nobody waits for has a deadline too.
bool HostQueue::is_overdue() const {
  return !operations_.empty() && !is_driven_ && operations_.front()->deadline &&
         Clock::now() >= *operations_.front()->deadline;
}

/// Whether somebody counts on this rank to go on, and nobody here does.
bool HostQueue::wants_thread() const {
  if (operations_.empty() || is_driven_) return false;
  const Operation& first = *operations_.front();
  return operations_.size() > 1 || !first.has_started || first.listener || first.is_watched ||
         host_->owes_steps();
}

/// Goes on with the first operations until `wanted` (all, where there is none) has ended or `until`
/// has come. Nobody else may be driving.
void HostQueue::drive(Lock& lock, const Operation* wanted, Time until) {
  is_driven_ = true;
  while (!operations_.empty() && (wanted == nullptr || !wanted->has_ended)) {
    const OperationPtr first = operations_.front();
    if (!first->deadline) begin_waiting(*first);
    lock.unlock();
    bool has_ended = true;
    std::optional<Error> error;
    try {
      has_ended = advance(*first, until);
    } catch (const Error& failure) {
      error = failure;
    } catch (const std::exception& failure) {
      error = Error(ErrorKind::kResourceExhausted, "no memory for a collective", failure);
    }
    if (error) {
      error->add({.rank = members_.endpoint.rank(),
                  .group = members_.name,
                  .operation = std::string(first->name),
                  .sequence = first->sequence});
      members_.fail(*error);
    }
    lock.lock();
    if (!has_ended) break;
    late_.clear();
    if (error) {
      fail_all(*error);
    } else {
      operations_.pop_front();
      if (!knows_all_cores_) learn_cores();
      end(*first);
      changed_.notify_all();  // who waits for it need not wait for those behind it
    }
  }
  is_driven_ = false;
  changed_.notify_all();
  if (wants_thread() && !is_napping_) wanted_.notify_one();
}

/// It is the first of the queue now.
void HostQueue::begin_waiting(Operation& operation) {
  operation.deadline = transport::later(operation.patience);
  members_.flight->start(operation.sequence, Clock::now());
}

/// Returns whether the operation has ended. Does one step at least where that is possible.
bool HostQueue::advance(Operation& operation, Time until) {
  if (!host_ && !attach(operation, until)) return false;
  if (!operation.has_started) {
    host_->begin(operation.request);
    operation.task = host_->finish(std::move(operation.request));
    operation.has_started = true;
  } else if (!wait_for_ranks(operation, until)) {
    return false;
  }
  operation.task.resume();
  while (!operation.task.is_done()) {
    if (Clock::now() >= until || !wait_for_ranks(operation, until)) return false;
    operation.task.resume();
  }
  return true;
}

bool HostQueue::wait_for_ranks(Operation& operation, Time until) {
  while (!host_->has_all()) {
    const Time now = Clock::now();
    if (!operation.waiting_since) operation.waiting_since = now;
    if (now >= until) return false;
    const auto left = std::min({until, *operation.deadline, now + kLook}) - now;
    if (host_->wait_for_all(std::chrono::ceil<microseconds>(left))) {
      note_wait(operation, host_->last_waited());
      return true;
    }
    check(operation, host_->late());
  }
  if (operation.waiting_since) note_wait(operation, -1);  // they came while nobody looked
  return true;
}

void HostQueue::note_wait(Operation& operation, int rank) {
  const auto time =
      std::chrono::duration_cast<microseconds>(Clock::now() - *operation.waiting_since);
  operation.waiting_since.reset();
  operation.has_waited = true;
  if (time >= operation.wait.time) operation.wait = {rank, time};
}

/// The leader makes the arena, the others take it; each provides its own part.
bool HostQueue::attach(Operation& operation, Time until) {
  if (members_.group_rank == 0) memory_ = make_arena();
  while (members_.group_rank != 0) {
    const Time now = Clock::now();
    const auto left = std::max(std::min({until, *operation.deadline, now + kLook}) - now, {});
    auto memory = take(members_, Use::kArena, std::chrono::ceil<milliseconds>(left));
    if (memory) {
      memory_ = std::move(*memory);
      break;
    }
    check(operation, {0});
    if (Clock::now() >= until) return false;
  }
  if (memory_.bytes().size() != Arena::bytes_for(members_.size())) {
    throw Error(ErrorKind::kInvalidArgument,
                "group rank 0 of '" + members_.name + "' has made it for another number of ranks");
  }
  memory_.provide(Arena::staging_offset(members_.group_rank), Arena::kStagingBytes);
  const Arena arena(memory_.bytes(), members_.size());
  arena.cores(members_.group_rank) = own_cores_;
  host_.emplace(members_, arena, patience_);
  return true;
}

/// With its first operation: a group that has none hands nothing over, of which the system allows a
/// user only so much at a time.
transport::SharedMemory HostQueue::make_arena() const {
  auto memory = transport::SharedMemory::create_empty("trireme " + members_.name,
                                                      Arena::bytes_for(members_.size()));
  Arena::provide_control(memory, members_.size());
  give(members_, Use::kArena, memory);
  return memory;
}

/// After an operation, in which all ranks have told theirs. Under the mutex.
void HostQueue::learn_cores() {
  knows_all_cores_ = true;
  const Arena arena(memory_.bytes(), members_.size());
  std::vector<transport::Cores> cores;
  for (int rank = 0; rank < members_.size(); ++rank) cores.push_back(arena.cores(rank));
  patience_ = patience_for(cores);
  host_->set_patience(patience_);
}

/// While others are late, some 20 times a second. Throws where waiting is of no use any more.
void HostQueue::check(Operation& operation, const std::vector<int>& late) {
  std::vector<int> ranks;
  for (const int rank : late) ranks.push_back(members_.ranks[rank]);
  std::sort(ranks.begin(), ranks.end());
  {
    const Lock lock(mutex_);
    late_ = ranks;
  }
  if (const auto failure = group_failure_->error()) throw Error(*failure);
  for (const int rank : ranks) {
    if (members_.endpoint.notes().has_left(rank)) {
      throw transport::lost_rank(rank, "it has said goodbye");
    }
  }
  operation.refusals.check(members_, ranks, operation.sequence);
  const Time now = Clock::now();
  const Time start = *operation.deadline - operation.patience;
  if (now >= start + WaitNotes::kPatience) operation.waits.tell(members_, operation.name, ranks);
  if (now >= start + kDefinitionPatience) check_definitions(members_, ranks);
  if (now < *operation.deadline || ranks.empty()) return;
  throw late_error_with_waits(members_, ranks, operation.patience);
}

void HostQueue::end(Operation& operation) {
  operation.has_ended = true;
  if (operation.error) {
    members_.flight->fail(operation.sequence, Clock::now());
  } else {
    operation.waits.retract(members_);
    const LongestWait nobody{.group_rank = members_.group_rank};
    members_.flight->end(operation.sequence, Clock::now(),
                         operation.has_waited ? operation.wait : nobody);
  }
  if (operation.listener) operation.listener->completions->push(operation.listener->id);
}

void HostQueue::fail_all(const Error& error) {
  if (!failure_) failure_ = error;
  for (const OperationPtr& operation : operations_) {
    operation->error = failure_;
    end(*operation);
  }
  if (!operations_.empty()) members_.log_flight();
  operations_.clear();
  changed_.notify_all();
}

}  // namespace trireme::collectives
