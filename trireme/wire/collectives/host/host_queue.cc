// What the group and whoever waits see; host_drive.cc has the rest.

#include "trireme/wire/collectives/host/host_queue.h"

#include <algorithm>
#include <utility>

#include "trireme/error.h"
#include "trireme/wire/collectives/host/arena.h"

namespace trireme::collectives {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::size_t kPromptBytes = 256 * 1024;  // begun in the call

}  // namespace

// ---- The group's side

HostQueue::HostQueue(const Members& members)
    : members_(members),
      group_failure_(members.failure()),
      own_cores_(transport::own_cores()),
      patience_(patience_for({&own_cores_, 1})) {
  thread_.emplace("group " + members_.name, [this] { serve(); });
}

transport::Patience HostQueue::patience_for(std::span<const transport::Cores> ranks) const {
  return transport::patience_for(ranks, members_.endpoint.local_peers().count() + 1);
}

/// Begins an operation; ends it too, where all ranks are quick. Else nothing is returned.
transport::WorkPtr HostQueue::try_now(const Request& request) {
  last_submit_ = Clock::now();
  members_.flight->call(num_submitted_, request, last_submit_);
  members_.flight->start(num_submitted_, last_submit_);
  host_->begin(request);
  if (!host_->has_met_quickly() || !host_->end_now(request)) return nullptr;
  const Time end = Clock::now();
  members_.flight->end(
      num_submitted_++, end,
      {host_->last_waited(), std::chrono::duration_cast<microseconds>(end - last_submit_)});
  return done_;
}

transport::WorkPtr HostQueue::submit(Request request) {
  Lock lock(mutex_);
  if (!failure_ && group_failure_->is_set()) {
    failure_ = group_failure_->error();
    failure_->add({.rank = members_.endpoint.rank(), .group = members_.name});
  }
  const bool is_prompt =
      operations_.empty() && !is_driven_ && !failure_ && request.bytes() <= kPromptBytes;
  // Ranks that share cores are seldom quick, unless there is next to nothing to do.
  const bool is_quick = patience_.spin.count() > 0 || request.bytes() <= Arena::kSlotBytes;
  const bool is_begun = is_prompt && is_quick && host_;
  if (is_begun) {
    if (transport::WorkPtr done = try_now(request)) return done;
  }
  const auto operation = std::make_shared<Operation>(shared_from_this(), request, num_submitted_++);
  if (failure_) {
    operation->error = failure_;
    operation->has_ended = true;
    return operation;
  }
  operations_.push_back(operation);
  if (is_begun) {
    operation->task = host_->finish(std::move(request));
    operation->has_started = true;
    operation->deadline = transport::later(operation->patience);
  } else {
    last_submit_ = Clock::now();
    members_.flight->call(operation->sequence, request, last_submit_);
    operation->request = std::move(request);
  }
  if (is_prompt) drive(lock, operation.get(), last_submit_ + patience_.spin + patience_.yield);
  if (wants_thread() && !is_napping_) wanted_.notify_one();
  return operation;
}

std::vector<int> HostQueue::missing() const {
  const Lock lock(mutex_);
  return late_;
}

void HostQueue::close() {
  Lock lock(mutex_);
  if (!is_driven_) drive(lock, nullptr, Clock::now());  // what waits for nobody
  is_closing_ = true;
  const bool is_busy = !operations_.empty();
  lock.unlock();
  wanted_.notify_one();
  Error closed(ErrorKind::kCancelled, "the group was closed with operations under way");
  closed.add({.group = members_.name});
  if (is_busy) members_.fail(closed);
  thread_->join();
  lock.lock();
  changed_.wait(lock, [this] { return !is_driven_; });
  fail_all(closed);
}

// ---- Whoever waits

/// Who only looks does nothing for it: the thread has to.
bool HostQueue::is_done(const Operation& operation) {
  const Lock lock(mutex_);
  operation.is_watched = true;
  if (wants_thread() && !is_napping_) wanted_.notify_one();
  return operation.has_ended;
}

bool HostQueue::wait_for(const Operation& operation, milliseconds time) {
  const Time until = transport::later(time);
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
  group_failure_->mark_given();
  throw Error(error);
}

void HostQueue::tell_end(Operation& operation, Listener listener) {
  const Lock lock(mutex_);
  operation.listener = std::move(listener);
  if (operation.has_ended) operation.listener->completions->push(operation.listener->id);
  if (wants_thread() && !is_napping_) wanted_.notify_one();
}

// ---- Shared memory for buffers

std::span<std::byte> HostQueue::allocate(std::size_t bytes, milliseconds deadline) {
  // After the operations before it, as one of its own: nobody drives meanwhile.
  constexpr std::size_t kMostBytes = std::size_t{1} << 46;  // what a process can map
  if (bytes > kMostBytes / static_cast<std::size_t>(members_.size())) {
    throw Error(ErrorKind::kInvalidArgument, "no " + std::to_string(bytes) +
                                                 " bytes of memory for each of " +
                                                 std::to_string(members_.size()) + " ranks");
  }
  const auto operation = std::make_shared<Operation>(shared_from_this(), "allocate", deadline);
  Lock lock(mutex_);
  while (!operations_.empty() || is_driven_) {
    if (!is_driven_) {
      drive(lock, nullptr, Time::max());
    } else {
      changed_.wait(lock);
    }
  }
  if (!failure_) failure_ = group_failure_->error();
  if (failure_) throw Error(*failure_);
  is_driven_ = true;
  lock.unlock();
  std::optional<Error> error;
  try {
    operation->deadline = transport::later(deadline);
    if (!host_) attach(*operation, Time::max());
    add_region(*operation, bytes);
  } catch (const Error& failure) {
    error = failure;
  } catch (const std::exception& failure) {
    error = Error(ErrorKind::kResourceExhausted, "no memory for a collective", failure);
  }
  if (error) {
    error->add({.rank = members_.endpoint.rank(), .group = members_.name, .operation = "allocate"});
    members_.fail(*error);
  }
  lock.lock();
  is_driven_ = false;
  late_.clear();
  changed_.notify_all();
  if (error) {
    fail_all(*error);
    throw Error(*error);
  }
  return host_->registry().part(host_->registry().num_regions(), members_.group_rank).first(bytes);
}

/// The leader makes a region and hands it over; the others take it.
void HostQueue::add_region(Operation& operation, std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  const std::size_t part = std::max<std::size_t>((bytes + kPage - 1) / kPage * kPage, kPage);
  const std::size_t all = part * static_cast<std::size_t>(members_.size());
  if (members_.group_rank == 0) {
    auto memory = transport::SharedMemory::create_empty("trireme " + members_.name, all);
    memory.provide(0, part);
    give(members_, Use::kRegion, memory);
    return host_->registry().add(std::move(memory));
  }
  std::optional<transport::SharedMemory> memory;
  while (!(memory = take(members_, Use::kRegion, kLook))) check(operation, {0});
  if (memory->bytes().size() != all) {
    throw Error(ErrorKind::kInvalidArgument,
                "ranks of '" + members_.name + "' allocate different numbers of bytes: this one " +
                    std::to_string(bytes) + ", group rank 0 about " +
                    std::to_string(memory->bytes().size() / members_.ranks.size()));
  }
  memory->provide(part * static_cast<std::size_t>(members_.group_rank), part);
  host_->registry().add(std::move(*memory));
}

HostBackend::HostBackend(const Members& members) : queue_(std::make_shared<HostQueue>(members)) {}

HostBackend::~HostBackend() { queue_->close(); }

transport::WorkPtr HostBackend::submit(Request request) {
  return queue_->submit(std::move(request));
}

std::span<std::byte> HostBackend::allocate(std::size_t bytes, std::chrono::milliseconds deadline) {
  return queue_->allocate(bytes, deadline);
}

std::vector<int> HostBackend::missing() const { return queue_->missing(); }

}  // namespace trireme::collectives
