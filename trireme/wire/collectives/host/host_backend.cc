#include "trireme/wire/collectives/host/host_backend.h"

#include <algorithm>
#include <utility>

#include "trireme/base/error.h"
#include "trireme/wire/collectives/host/hand_over.h"
#include "trireme/wire/collectives/host/host_queue.h"
#include "trireme/wire/transport/failure.h"
#include "trireme/wire/transport/watch.h"

namespace trireme::collectives {

using std::chrono::microseconds;
using std::chrono::milliseconds;

namespace {

constexpr std::size_t kPromptBytes = 256 * 1024;  // begun in the call

}  // namespace

// ---- The group's side

HostBackend::Queue::Queue(const Members& members)
    : members_(members),
      world_failure_(members.endpoint.shared_failure()),
      patience_(transport::Patience::for_ranks(members.endpoint.local_peers().count() + 1)) {
  if (members_.group_rank == 0) {
    memory_ = transport::SharedMemory::create("trireme " + members_.name,
                                              Arena::bytes_for(members_.size()));
    host_.emplace(members_, Arena(memory_.bytes(), members_.size()), patience_);
    give(members_, Use::kArena, memory_);
  }
  thread_.emplace("group " + members_.name, [this] { serve(); });
}

transport::WorkPtr HostBackend::Queue::submit(Request request) {
  Lock lock(mutex_);
  const auto operation = std::make_shared<Operation>(
      shared_from_this(), to_text(request.description.operation), num_submitted_++);
  if (!failure_ && world_failure_->is_set()) failure_ = world_failure_->error();
  if (failure_) {
    operation->error = failure_;
    operation->has_ended = true;
    return operation;
  }
  const Time now = Clock::now();
  if (members_.flight) members_.flight->call(operation->sequence, request, now);
  const bool is_prompt = request.data.bytes.size() <= kPromptBytes;
  operation->is_small = HostRank::is_small(request);
  operation->request = std::move(request);
  operations_.push_back(operation);
  if (is_prompt && !is_driven_) {
    drive(lock, operation.get(), now + patience_.spin + patience_.yield);
  }
  if (wants_thread()) changed_.notify_all();
  return operation;
}

std::vector<int> HostBackend::Queue::missing() const {
  const Lock lock(mutex_);
  return late_;
}

void HostBackend::Queue::close() {
  Lock lock(mutex_);
  if (!is_driven_) drive(lock, nullptr, Clock::now());  // what waits for nobody
  is_closing_ = true;
  const bool is_busy = !operations_.empty();
  lock.unlock();
  changed_.notify_all();
  Error closed(ErrorKind::kCancelled, "the group was closed with operations under way");
  closed.add({.group = members_.name});
  if (is_busy) members_.endpoint.poison(closed);
  thread_->join();
  lock.lock();
  changed_.wait(lock, [this] { return !is_driven_; });
  fail_all(closed);
}

// ---- Whoever waits

bool HostBackend::Queue::is_done(const Operation& operation) {
  Lock lock(mutex_);
  if (!operation.has_ended && !is_driven_) drive(lock, &operation, Clock::now());
  return operation.has_ended;
}

bool HostBackend::Queue::wait_for(const Operation& operation, milliseconds time) {
  const Time until = after(Clock::now(), time);
  Lock lock(mutex_);
  while (!operation.has_ended) {
    if (!is_driven_) {
      drive(lock, &operation, until);
    } else if (until == Time::max()) {
      changed_.wait(lock);
    } else {
      changed_.wait_until(lock, until);
    }
    if (!operation.has_ended && Clock::now() >= until) return false;
  }
  if (!operation.error) return true;
  const Error error = *operation.error;
  lock.unlock();
  world_failure_->mark_given();
  throw Error(error);
}

void HostBackend::Queue::tell_end(Operation& operation, Listener listener) {
  const Lock lock(mutex_);
  operation.listener = std::move(listener);
  if (operation.has_ended) operation.listener->completions->push(operation.listener->id);
}

// ---- Whoever drives

void HostBackend::Queue::serve() {
  Lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_closing_ || wants_thread(); });
    if (is_closing_) return;
    drive(lock, nullptr, Time::max());
  }
}

/// Whether the others cannot go on without this rank, and nobody here does.
bool HostBackend::Queue::wants_thread() const {
  if (operations_.empty() || is_driven_) return false;
  return operations_.size() > 1 || !operations_.front()->has_started || host_->owes_steps();
}

/// Goes on with the first operations until `wanted` (all, where there is none) has ended or `until`
/// has come. Nobody else may be driving.
void HostBackend::Queue::drive(Lock& lock, const Operation* wanted, Time until) {
  is_driven_ = true;
  while (!operations_.empty() && (wanted == nullptr || !wanted->has_ended)) {
    const OperationPtr first = operations_.front();
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
      members_.endpoint.poison(*error);
    }
    lock.lock();
    if (!has_ended) break;
    late_.clear();
    if (error) {
      fail_all(*error);
    } else {
      operations_.pop_front();
      end(*first);
    }
  }
  is_driven_ = false;
  changed_.notify_all();
}

/// Returns whether the operation has ended.
bool HostBackend::Queue::advance(Operation& operation, Time until) {
  if (!operation.deadline) {
    const Time now = Clock::now();
    operation.deadline = after(now, members_.deadline);
    if (members_.flight) members_.flight->start(operation.sequence, now);
  }
  if (!host_ && !attach(operation, until)) return false;
  if (!operation.has_started) {
    operation.task = host_->run(std::move(operation.request));
    operation.has_started = true;
    operation.task.resume();
  }
  while (!operation.task.is_done()) {
    if (!wait_for_ranks(operation, until)) return false;
    operation.task.resume();
  }
  return true;
}

bool HostBackend::Queue::wait_for_ranks(Operation& operation, Time until) {
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

void HostBackend::Queue::note_wait(Operation& operation, int rank) {
  const Time now = Clock::now();
  const auto time = std::chrono::duration_cast<microseconds>(now - *operation.waiting_since);
  operation.waiting_since.reset();
  operation.has_waited = true;
  if (operation.is_small) operation.small_end = now;
  if (time >= operation.wait.time) operation.wait = {rank, time};
}

/// While others are late, some 20 times a second. Throws where waiting is of no use any more.
void HostBackend::Queue::check(Operation& operation, const std::vector<int>& late) {
  std::vector<int> ranks;
  for (const int rank : late) ranks.push_back(members_.ranks[rank]);
  std::sort(ranks.begin(), ranks.end());
  {
    const Lock lock(mutex_);
    late_ = ranks;
  }
  if (const auto failure = world_failure_->error()) throw Error(*failure);
  if (Clock::now() < *operation.deadline || ranks.empty()) return;
  throw late_error(ranks, members_.deadline);
}

void HostBackend::Queue::end(Operation& operation) {
  operation.has_ended = true;
  if (members_.flight && !operation.error) {
    const Time time = operation.small_end ? *operation.small_end : Clock::now();
    const LongestWait nobody{.group_rank = members_.group_rank};
    members_.flight->end(operation.sequence, time, operation.has_waited ? operation.wait : nobody);
  }
  if (operation.listener) operation.listener->completions->push(operation.listener->id);
}

void HostBackend::Queue::fail_all(const Error& error) {
  if (!failure_) failure_ = error;
  for (const OperationPtr& operation : operations_) {
    operation->error = failure_;
    if (members_.flight) members_.flight->fail(operation->sequence, Clock::now());
    end(*operation);
  }
  if (!operations_.empty()) members_.log_flight();
  operations_.clear();
  changed_.notify_all();
}

HostBackend::HostBackend(const Members& members) : queue_(std::make_shared<Queue>(members)) {}

HostBackend::~HostBackend() { queue_->close(); }

transport::WorkPtr HostBackend::submit(Request request) {
  return queue_->submit(std::move(request));
}

std::span<std::byte> HostBackend::allocate(std::size_t bytes) { return queue_->allocate(bytes); }

std::vector<int> HostBackend::missing() const { return queue_->missing(); }

}  // namespace trireme::collectives
