#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trireme/base/device.h"
#include "trireme/wire/collectives/device/device_engine.h"
#include "trireme/wire/collectives/device/host_exchange.h"
#include "trireme/wire/collectives/members.h"
#include "trireme/wire/endpoint/work.h"
#include "trireme/wire/system/thread.h"

namespace trireme::collectives {

class DeviceQueue;

/// An operation that a stream does. It ends when the stream has done it; who waits looks.
class DeviceWork final : public transport::Work {
 public:
  DeviceWork(std::shared_ptr<DeviceQueue> queue, std::shared_ptr<transport::Failure> failure)
      : queue_(std::move(queue)), state_(std::move(failure)) {}

  bool is_done() const override;
  bool wait_for(std::chrono::milliseconds time) override;
  void tell_end(std::shared_ptr<transport::Completions> completions, std::size_t id) override {
    state_.tell_end(std::move(completions), id);
  }

  /// The mark behind it in its stream; null where it has failed before. Constant once the call that
  /// returned the work has.
  const Event* end() const { return end_.get(); }

 private:
  friend class DeviceQueue;

  const std::shared_ptr<DeviceQueue> queue_;  // shared with the backend, which may end before
  transport::PendingWork state_;
  std::unique_ptr<Event> end_;
};

/// The engines of a group, best ones for small buffers first, and why there is no other.
struct DeviceEngines {
  std::vector<std::unique_ptr<DeviceEngine>> engines;
  std::string why_no_other;
};

/// What a DeviceQueue works with.
struct DeviceParts {
  std::unique_ptr<Stream> stream;  ///< Of the group: operations run here.
  std::function<std::unique_ptr<Event>()> make_event;

  /// All ranks call it in their first operation.
  std::function<DeviceEngines(HostExchange&)> connect;

  Stream* caller = nullptr;  ///< Operations start after what it has at the call. May be null.
  bool checks_calls = false;
};

/// The operations of a group on a GPU, in the order of the calls: given to the stream in the call,
/// then watched until the stream has done them. Its thread and whoever waits look: for the end, the
/// deadline, the world's failure and that of the engines.
///
/// A failure ends all: the world is told, the engines are aborted, and once the GPU has let go of
/// the buffers (at most kLetGo) the works fail.
class DeviceQueue final : public std::enable_shared_from_this<DeviceQueue> {
 public:
  static constexpr std::chrono::seconds kLetGo{5};

  DeviceQueue(const Members& members, DeviceParts parts);

  /// Blocks in the first operation, and where calls are compared, until all ranks have called it.
  ///
  /// Errors   kInvalidArgument, thrown, for what the group's engines cannot do. Others reach the
  ///          work.
  transport::WorkPtr submit(Request request);

  std::vector<int> missing() const;

  /// Looks how far the stream is. Any thread.
  void advance();

  /// No call may follow, but those of works.
  void close();

 private:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;
  using DeviceWorkPtr = std::shared_ptr<DeviceWork>;  // shared as WorkPtr is

  struct Job {
    DeviceWorkPtr work;
    Description description;
    double scale = 1;
    std::chrono::milliseconds patience{0};  ///< From `since` to its deadline.
    DeviceEngine* engine = nullptr;
    std::unique_ptr<Event> ready;  ///< What the caller's stream had before it; may be none.
    std::optional<Time> since;     ///< It is the first, and its buffers are ready.
  };

  void refuse_capture() const;
  void prepare(const Description& description);
  DeviceEngine& choose(const Request& request);
  void enqueue(const Request& request, Job& job);
  Error with_first_cause(const Error& error) const;
  void checkpoint(const Job& job, Time deadline) const;
  void place_own(const Request& request);
  void finish_done();
  std::optional<Error> problem();
  std::optional<Error> engine_problem();
  void fail(Error error);
  static void let_go(const DeviceWork& work, Time limit);
  void serve();

  const Members members_;
  const std::shared_ptr<transport::Failure> group_failure_;  // shared with the endpoint
  DeviceParts parts_;

  // Of the thread that calls, but for what engines_mutex_ guards.
  HostExchange exchange_;
  std::int64_t num_submitted_ = 0;
  bool is_connected_ = false;
  std::mutex engines_mutex_;  // taken before mutex_
  DeviceEngines engines_;

  mutable std::mutex mutex_;  // for what follows, and the flight record
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  Agreement agreement_;
  std::optional<Error> failure_;
  bool is_closing_ = false;
  std::optional<transport::LibraryThread> thread_;
};

}  // namespace trireme::collectives
