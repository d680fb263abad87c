#include "trireme/wire/collectives/host/host_backend.h"

#include <algorithm>
#include <utility>

#include "trireme/base/error.h"
#include "trireme/wire/collectives/host/hand_over.h"
#include "trireme/wire/transport/failure.h"
#include "trireme/wire/transport/watch.h"

namespace trireme::collectives {
namespace {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr milliseconds kLook{50};                 // how often a waiter looks for a failure
constexpr std::size_t kPromptBytes = 256 * 1024;  // begun in the call

Time after(Time time, milliseconds by) {
  return by > std::chrono::hours(24 * 365) ? Time::max() : time + by;  // no overflow
}

}  // namespace

/// The queue and the thread that goes on with it when nobody else does.
class HostBackend::Queue : public std::enable_shared_from_this<Queue> {
 public:
  explicit Queue(const Members& members);

  transport::WorkPtr submit(Request request);
  std::span<std::byte> allocate(std::size_t bytes);
  std::vector<int> missing() const;
  void close();

 private:
  /// Who is told of an operation's end.
  struct Listener {
    std::shared_ptr<transport::Completions> completions;  // shared with its thread
    std::size_t id;
  };

  /// One operation; its fields are the queue's.
  struct Operation final : transport::Work {
    Operation(std::shared_ptr<Queue> owner, std::string_view called, std::int64_t number)
        : queue(std::move(owner)), name(called), sequence(number) {}

    bool is_done() const override { return queue->is_done(*this); }
    bool wait_for(milliseconds time) override { return queue->wait_for(*this, time); }
    void tell_end(std::shared_ptr<transport::Completions> completions, std::size_t id) override {
      queue->tell_end(*this, {std::move(completions), id});
    }

    const std::shared_ptr<Queue> queue;
    const std::string_view name;
    const std::int64_t sequence;
    Request request;  ///< Until it has started.
    Task task;
    bool has_started = false;
    std::optional<Time> deadline;  ///< Since it is the first of the queue.
    bool has_ended = false;
    std::optional<Error> error;
    std::optional<Listener> listener;
  };
  using OperationPtr = std::shared_ptr<Operation>;  // shared by the queue and whoever waits
  using Lock = std::unique_lock<std::mutex>;

  bool is_done(const Operation& operation);
  bool wait_for(const Operation& operation, milliseconds time);
  void tell_end(Operation& operation, Listener listener);
  void serve();
  void drive(Lock& lock, const Operation* wanted, Time until);
  bool advance(Operation& operation, Time until);
  bool wait_for_ranks(Operation& operation, Time until);
  bool attach(Operation& operation, Time until);
  void add_region(Operation& operation, std::size_t bytes);
  void check(Operation& operation, const std::vector<int>& late);
  void end(Operation& operation);
  void fail_all(const Error& error);
  bool wants_thread() const;

  const Members members_;
  const std::shared_ptr<transport::Failure> world_failure_;  // shared with the endpoint
  const transport::Patience patience_;

  // Of whoever drives, or holds the mutex while nobody does.
  transport::SharedMemory memory_;
  std::optional<HostRank> host_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<OperationPtr> operations_;
  std::int64_t num_submitted_ = 0;
  bool is_driven_ = false;
  bool is_closing_ = false;
  std::optional<Error> failure_;
  std::vector<int> late_;  ///< World ranks that the first operation waits for.
  std::optional<transport::LibraryThread> thread_;
};

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
  const bool is_prompt = request.data.bytes.size() <= kPromptBytes;
  operation->request = std::move(request);
  operations_.push_back(operation);
  if (is_prompt && !is_driven_) {
    drive(lock, operation.get(), Clock::now() + patience_.spin + patience_.yield);
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
  if (!operation.deadline) operation.deadline = after(Clock::now(), members_.deadline);
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
    if (now >= until) return false;
    const auto left = std::min({until, *operation.deadline, now + kLook}) - now;
    if (host_->wait_for_all(std::chrono::ceil<microseconds>(left))) return true;
    check(operation, host_->late());
  }
  return true;
}

/// Takes the arena that the leader has made.
bool HostBackend::Queue::attach(Operation& operation, Time until) {
  while (true) {
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
  host_.emplace(members_, Arena(memory_.bytes(), members_.size()), patience_);
  return true;
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
  if (operation.listener) operation.listener->completions->push(operation.listener->id);
}

void HostBackend::Queue::fail_all(const Error& error) {
  if (!failure_) failure_ = error;
  for (const OperationPtr& operation : operations_) {
    operation->error = failure_;
    end(*operation);
  }
  operations_.clear();
  changed_.notify_all();
}

// ---- Shared memory for buffers

std::span<std::byte> HostBackend::Queue::allocate(std::size_t bytes) {
  // After the operations before it, as one of its own: nobody drives meanwhile.
  const auto operation = std::make_shared<Operation>(shared_from_this(), "allocate", -1);
  Lock lock(mutex_);
  while (!operations_.empty() || is_driven_) {
    if (!is_driven_) {
      drive(lock, nullptr, Time::max());
    } else {
      changed_.wait(lock);
    }
  }
  if (failure_) throw Error(*failure_);
  is_driven_ = true;
  lock.unlock();
  std::optional<Error> error;
  try {
    operation->deadline = after(Clock::now(), members_.deadline);
    if (!host_) attach(*operation, Time::max());
    add_region(*operation, bytes);
  } catch (const Error& failure) {
    error = failure;
    error->add({.rank = members_.endpoint.rank(), .group = members_.name, .operation = "allocate"});
    members_.endpoint.poison(*error);
  }
  lock.lock();
  is_driven_ = false;
  changed_.notify_all();
  if (error) {
    fail_all(*error);
    throw Error(*error);
  }
  return host_->registry().part(host_->registry().num_regions(), members_.group_rank).first(bytes);
}

/// The leader makes a region and hands it over; the others take it.
void HostBackend::Queue::add_region(Operation& operation, std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  const std::size_t part = std::max<std::size_t>((bytes + kPage - 1) / kPage * kPage, kPage);
  const std::size_t all = part * static_cast<std::size_t>(members_.size());
  if (members_.group_rank == 0) {
    auto memory = transport::SharedMemory::create("trireme " + members_.name, all);
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
  host_->registry().add(std::move(*memory));
}

HostBackend::HostBackend(const Members& members) : queue_(std::make_shared<Queue>(members)) {}

HostBackend::~HostBackend() { queue_->close(); }

transport::WorkPtr HostBackend::submit(Request request) {
  return queue_->submit(std::move(request));
}

std::span<std::byte> HostBackend::allocate(std::size_t bytes) { return queue_->allocate(bytes); }

std::vector<int> HostBackend::missing() const { return queue_->missing(); }

}  // namespace trireme::collectives
