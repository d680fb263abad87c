#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "trireme/base/cuda/memory.h"
#include "trireme/base/device.h"
#include "trireme/wire/collectives/members.h"
#include "trireme/wire/collectives/request.h"

namespace trireme::collectives {

class DeviceQueue;
struct DeviceParts;

/// Where a group's buffers are, and what its operations wait for.
struct DeviceChoice {
  Device device;             ///< A GPU of this process.
  Stream* caller = nullptr;  ///< Operations start after what it has at the call. May be null.
  bool checks_calls = false;
};

/// The operations of a group whose buffers are in memory of GPUs, one per rank.
class DeviceBackend final : public Backend {
 public:
  /// Errors   kUnavailable, saying why, where there is no such GPU.
  DeviceBackend(const Members& members, const DeviceChoice& choice);
  DeviceBackend(const Members& members, DeviceParts parts);
  ~DeviceBackend() override;

  transport::WorkPtr submit(Request request) override;
  std::span<std::byte> allocate(std::size_t bytes, std::chrono::milliseconds deadline) override;
  std::vector<int> missing() const override;

 private:
  const Device device_;
  std::deque<cuda::DeviceMemory> allocated_;
  const std::shared_ptr<DeviceQueue> queue_;  // shared with works, which may outlive the group
};

/// The mark in its stream behind an operation on a GPU; null of other works, and of failed ones.
const Event* end_of(const transport::Work& work);

}  // namespace trireme::collectives
