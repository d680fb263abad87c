#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "trireme/wire/bootstrap/failure.h"
#include "trireme/wire/collectives/host/host_rank.h"
#include "trireme/wire/collectives/members.h"
#include "trireme/wire/collectives/request.h"
#include "trireme/wire/collectives/waits.h"
#include "trireme/wire/endpoint/watch.h"
#include "trireme/wire/system/signal.h"
#include "trireme/wire/system/thread.h"

namespace trireme::collectives {

/// How often a waiter looks for a failure.
inline constexpr std::chrono::milliseconds kLook{50};

/// The work of an operation that was done in the call.
class DoneWork final : public transport::Work {
 public:
  bool is_done() const override { return true; }
  bool wait_for(std::chrono::milliseconds) override { return true; }
  void tell_end(std::shared_ptr<transport::Completions> completions, std::size_t id) override {
    completions->push(id);
  }
};

/// The queue of a HostBackend and the thread that goes on with it when nobody else does.
class HostQueue final : public std::enable_shared_from_this<HostQueue> {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit HostQueue(const Members& members);

  transport::WorkPtr submit(Request request);
  std::span<std::byte> allocate(std::size_t bytes, std::chrono::milliseconds deadline);
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
    Operation(std::shared_ptr<HostQueue> owner, const Request& of, std::int64_t number)
        : queue(std::move(owner)),
          name(to_text(of.description.operation)),
          sequence(number),
          patience(of.deadline.value_or(queue->members_.deadline)) {}
    Operation(std::shared_ptr<HostQueue> owner, std::string_view called,
              std::chrono::milliseconds time)
        : queue(std::move(owner)), name(called), sequence(-1), patience(time) {}

    bool is_done() const override { return queue->is_done(*this); }
    bool wait_for(std::chrono::milliseconds time) override { return queue->wait_for(*this, time); }
    void tell_end(std::shared_ptr<transport::Completions> completions, std::size_t id) override {
      queue->tell_end(*this, {std::move(completions), id});
    }

    const std::shared_ptr<HostQueue> queue;
    const std::string_view name;
    const std::int64_t sequence;
    const std::chrono::milliseconds patience;  ///< Until its deadline.
    Request request;                           ///< Until it has started.
    Task task;
    bool has_started = false;
    std::optional<Time> deadline;     ///< Since it is the first of the queue.
    mutable bool is_watched = false;  ///< Somebody looks whether it has ended, and does not wait.
    bool has_ended = false;
    std::optional<Error> error;
    std::optional<Listener> listener;
    RefusalWatch refusals;
    OtherWaits waits;

    // For the flight record.
    bool has_waited = false;
    LongestWait wait;
    std::optional<Time> waiting_since;
  };
  using OperationPtr = std::shared_ptr<Operation>;  // shared by the queue and whoever waits
  using Lock = std::unique_lock<std::mutex>;

  bool is_done(const Operation& operation);
  bool wait_for(const Operation& operation, std::chrono::milliseconds time);
  void tell_end(Operation& operation, Listener listener);
  void serve();
  void drive(Lock& lock, const Operation* wanted, Time until);
  void begin_waiting(Operation& operation);
  bool advance(Operation& operation, Time until);
  bool wait_for_ranks(Operation& operation, Time until);
  bool attach(Operation& operation, Time until);
  transport::SharedMemory make_arena() const;
  void learn_cores();
  transport::Patience patience_for(std::span<const transport::Cores> ranks) const;
  void add_region(Operation& operation, std::size_t bytes);
  void check(Operation& operation, const std::vector<int>& late);
  void note_wait(Operation& operation, int rank);
  transport::WorkPtr try_now(const Request& request);
  void end(Operation& operation);
  void fail_all(const Error& error);
  bool wants_thread() const;
  bool is_overdue() const;

  const Members members_;
  const std::shared_ptr<transport::Failure> group_failure_;  // shared with the endpoint
  const transport::Cores own_cores_;
  const transport::WorkPtr done_ = std::make_shared<DoneWork>();

  // Of whoever drives, or holds the mutex while nobody does.
  transport::SharedMemory memory_;
  std::optional<HostRank> host_;
  transport::Patience patience_;  ///< By this rank's cores until those of all are known.
  bool knows_all_cores_ = false;

  mutable std::mutex mutex_;
  std::condition_variable changed_;  ///< An operation has ended, or nobody drives any more.
  std::condition_variable wanted_;   ///< The thread is; apart, or every operation would wake it.
  std::deque<OperationPtr> operations_;
  std::int64_t num_submitted_ = 0;
  bool is_driven_ = false;
  bool is_closing_ = false;
  bool is_napping_ = false;  ///< The thread will look by itself.
  Time last_submit_;
  std::optional<Error> failure_;
  std::vector<int> late_;  ///< World ranks that the first operation waits for.
  std::optional<transport::LibraryThread> thread_;
};

class HostQueue;

/// The operations of a group whose ranks are all on one host.
///
/// Whoever has time goes on with the first operation of the queue: the thread that calls it, as
/// long as the others are quick; the thread that waits for it; else one of the backend's own. So a
/// small operation costs no change of threads, and a large one goes on while its caller computes.
///
/// The leader (group rank 0) makes the arena and hands it to the others when its first operation
/// runs; they take it when theirs does.
class HostBackend final : public Backend {
 public:
  /// members   must share memory.
  explicit HostBackend(const Members& members);
  ~HostBackend() override;

  transport::WorkPtr submit(Request request) override;
  std::span<std::byte> allocate(std::size_t bytes, std::chrono::milliseconds deadline) override;
  std::vector<int> missing() const override;

 private:
  const std::shared_ptr<HostQueue> queue_;  // shared with works, which may outlive the group
};

}  // namespace trireme::collectives
