#pragma once

#include <memory>
#include <utility>

#include "trireme/base/device.h"
#include "trireme/wire/endpoint/work.h"

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

}  // namespace trireme::collectives
