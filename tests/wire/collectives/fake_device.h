#pragma once

// A stream that does nothing until it is told to, and an engine over it: what a group does with a
// GPU, where there is none.

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "trireme/wire/collectives/device/device_queue.h"

namespace trireme::collectives::test {

/// How many operations were given to a stream, and how many it has done.
struct FakeGpu {
  std::atomic<int> num_given{0};
  std::atomic<int> num_done{0};
  std::atomic<bool> is_aborted{false};
  std::atomic<bool> is_broken{false};   ///< The engine says so.
  std::atomic<bool> is_unsound{false};  ///< What it has done is worth nothing; likewise.
  std::atomic<bool> does_at_once{false};
  std::mutex mutex;
  std::vector<Collective> operations;
};

class FakeStream final : public Stream {
 public:
  explicit FakeStream(std::shared_ptr<FakeGpu> gpu) : gpu_(std::move(gpu)) {}
  Device device() const override { return {}; }
  void run_after(const Event& /*event*/) override {}
  void wait() override {}
  FakeGpu& gpu() const { return *gpu_; }

 private:
  const std::shared_ptr<FakeGpu> gpu_;  // shared with the test
};

class FakeEvent final : public Event {
 public:
  explicit FakeEvent(std::shared_ptr<FakeGpu> gpu) : gpu_(std::move(gpu)) {}
  Device device() const override { return {}; }
  void record(Stream& /*stream*/) override { mark_ = gpu_->num_given; }
  bool is_done() const override {
    return gpu_->does_at_once || gpu_->is_aborted || gpu_->num_done >= mark_;
  }
  void wait() const override {
    while (!is_done()) std::this_thread::yield();
  }
  std::chrono::nanoseconds since(const Event& /*earlier*/) const override { return {}; }

 private:
  const std::shared_ptr<FakeGpu> gpu_;  // shared with the test
  int mark_ = 0;
};

/// Counts what it is given. Moves nothing.
class FakeEngine final : public DeviceEngine {
 public:
  FakeEngine(std::shared_ptr<FakeGpu> gpu, std::string name, std::size_t best_below,
             std::string refusal = "")
      : gpu_(std::move(gpu)),
        name_(std::move(name)),
        best_below_(best_below),
        refusal_(std::move(refusal)) {}

  std::string_view name() const override { return name_; }
  std::optional<std::string> why_not(const Description& /*description*/) const override {
    return refusal_.empty() ? std::nullopt : std::optional(refusal_);
  }
  std::size_t best_below() const override { return best_below_; }
  void enqueue(const Request& request, Stream& /*stream*/, const Checkpoint& checkpoint) override {
    checkpoint();
    const std::lock_guard lock(gpu_->mutex);
    gpu_->operations.push_back(request.description.operation);
    ++gpu_->num_given;
  }
  bool is_sound() const override { return !gpu_->is_unsound; }
  std::optional<Error> failure() override {
    if (!gpu_->is_broken && !gpu_->is_unsound) return std::nullopt;
    return Error(ErrorKind::kIo, "the fabric is broken");
  }
  void abort() noexcept override { gpu_->is_aborted = true; }

 private:
  const std::shared_ptr<FakeGpu> gpu_;  // shared with the test
  const std::string name_;
  const std::size_t best_below_;
  const std::string refusal_;
};

inline DeviceParts fake_parts(const std::shared_ptr<FakeGpu>& gpu) {
  return {.stream = std::make_unique<FakeStream>(gpu),
          .make_event = [gpu] { return std::make_unique<FakeEvent>(gpu); },
          .connect =
              [gpu](HostExchange& /*exchange*/) {
                DeviceEngines engines;
                engines.engines.push_back(std::make_unique<FakeEngine>(gpu, "fake", 1024));
                return engines;
              }};
}

}  // namespace trireme::collectives::test
