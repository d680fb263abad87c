#include "trireme/wire/collectives/network_backend.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "trireme/wire/collectives/call.h"
#include "trireme/wire/collectives/eligible.h"
#include "trireme/wire/collectives/network.h"
#include "trireme/wire/endpoint/work.h"
#include "trireme/wire/system/thread.h"

namespace trireme::collectives {
namespace {

using Clock = std::chrono::steady_clock;

Algorithm algorithm_for(const Members& members, const Description& description) {
  if (members.algorithm && is_eligible(*members.algorithm, description, members.ranks_per_host)) {
    return *members.algorithm;
  }
  return cheapest({description, members.ranks_per_host}, members.costs);
}

}  // namespace

/// The queue of operations and the thread that runs them.
class NetworkBackend::Queue {
 public:
  explicit Queue(Members members)
      : members_(std::move(members)), thread_("group " + members_.name, [this] { serve(); }) {}

  ~Queue() {
    if (stop()) {
      Error closed(ErrorKind::kCancelled, "the group was closed with operations under way");
      members_.fail(closed.add({.group = members_.name}));
    }
    thread_.join();
  }

  std::span<std::byte> allocate(std::size_t bytes) {
    if (const auto error = members_.failure()->error()) throw Error(*error);
    const std::lock_guard lock(mutex_);
    const std::span<std::byte> memory = allocated_.emplace_back().at_least(bytes);
    std::fill(memory.begin(), memory.end(), std::byte{0});
    return memory;
  }

  std::vector<int> missing() const {
    const std::lock_guard lock(mutex_);
    return call_ == nullptr ? std::vector<int>() : call_->missing();
  }

  transport::WorkPtr submit(Request request) {
    auto work = std::make_shared<transport::PendingWork>(members_.failure());
    const std::lock_guard lock(mutex_);
    request.description.sequence = num_submitted_++;
    request.description.group_size = static_cast<std::uint32_t>(members_.size());
    request.description.order = members_.order;
    request.description.algorithm = algorithm_for(members_, request.description);
    members_.flight->call(request.description.sequence, request, Clock::now());
    jobs_.push_back({std::move(request), work});
    changed_.notify_all();
    return work;
  }

 private:
  struct Job {
    Request request;
    transport::PendingWorkPtr work;
  };

  /// Returns whether operations are under way.
  bool stop() {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
    changed_.notify_all();
    return is_busy_ || !jobs_.empty();
  }

  /// The next job; nothing once stopping and out of jobs.
  std::optional<Job> next_job() {
    std::unique_lock lock(mutex_);
    is_busy_ = false;
    changed_.wait(lock, [this] { return is_stopping_ || !jobs_.empty(); });
    if (jobs_.empty()) return std::nullopt;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    is_busy_ = true;
    return job;
  }

  void serve() {
    while (const std::optional<Job> job = next_job()) {
      if (!failure_) run(*job);
      finish(*job);
    }
  }

  void run(const Job& job) {
    const std::int64_t sequence = job.request.description.sequence;
    record([&](FlightRecorder& flight) { flight.start(sequence, Clock::now()); });
    Call call(members_, job.request.description, scratch_,
              {.scale = job.request.scale, .deadline = job.request.deadline});
    show(&call);
    try {
      run_over_network(call, job.request, schedules_);
      call.retract();
      record(
          [&](FlightRecorder& flight) { flight.end(sequence, Clock::now(), call.longest_wait()); });
    } catch (const Error& error) {
      fail(call, error);
    } catch (const std::exception& error) {
      fail(call, Error(ErrorKind::kResourceExhausted, "no memory for a collective", error));
    }
    show(nullptr);
  }

  /// Callers write to the record too.
  void record(const std::function<void(FlightRecorder&)>& write) {
    const std::lock_guard lock(mutex_);
    write(*members_.flight);
  }

  void show(const Call* call) {
    const std::lock_guard lock(mutex_);
    call_ = call;
  }

  /// Tells everyone, and returns when nothing of the call is under way.
  void fail(Call& call, Error error) {
    failure_ = error.add(call.context());
    members_.fail(error);
    call.drain();
    record([&](FlightRecorder& flight) { flight.fail(call.description().sequence, Clock::now()); });
    members_.log_flight();
  }

  void finish(const Job& job) {
    {
      const std::lock_guard lock(mutex_);  // a waiter may close the group as soon as it wakes
      is_busy_ = false;
    }
    if (failure_) {
      record([&](FlightRecorder& flight) {
        flight.fail(job.request.description.sequence, Clock::now());
      });
    }
    failure_ ? job.work->fail(*failure_) : job.work->complete();
  }

  const Members members_;
  Scratch scratch_;          // confined to the thread
  ScheduleCache schedules_;  // confined to the thread
  std::deque<Scratch> allocated_;
  std::optional<Error> failure_;  // confined to the thread
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  std::int64_t num_submitted_ = 0;
  const Call* call_ = nullptr;  ///< Under way.
  bool is_busy_ = false;
  bool is_stopping_ = false;
  transport::LibraryThread thread_;  // last: it uses the others
};

NetworkBackend::NetworkBackend(const Members& members) : queue_(std::make_unique<Queue>(members)) {}

NetworkBackend::~NetworkBackend() = default;

transport::WorkPtr NetworkBackend::submit(Request request) {
  return queue_->submit(std::move(request));
}

std::span<std::byte> NetworkBackend::allocate(std::size_t bytes, std::chrono::milliseconds) {
  return queue_->allocate(bytes);
}

std::vector<int> NetworkBackend::missing() const { return queue_->missing(); }

}  // namespace trireme::collectives
