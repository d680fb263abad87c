#pragma once

#include <cstdint>
#include <vector>

#include "trireme/base/cuda/memory.h"
#include "trireme/kernels/cuda/one_shot.h"
#include "trireme/wire/collectives/device/device_engine.h"
#include "trireme/wire/collectives/device/host_exchange.h"

namespace trireme::collectives {

/// Memory of this rank's GPU in which its kernels meet those of the others.
class IpcRegion {
 public:
  explicit IpcRegion(int device);

  int device() const { return device_; }
  std::byte* begin() const { return memory_.bytes().data(); }
  const cuda::IpcHandle& handle() const { return handle_; }
  void abandon() { memory_.abandon(); }

 private:
  int device_;
  cuda::DeviceMemory memory_;
  cuda::IpcHandle handle_;
};

/// all_reduce and barrier by kernels that read the memory of all ranks: ranks of one host whose
/// GPUs reach each other, also those that share one. In THE order, for any number of elements.
class IpcEngine final : public DeviceEngine {
 public:
  /// cards    all of one host, each with a region.
  /// Errors   kUnavailable, kIo where this GPU does not reach one of the others'.
  IpcEngine(const Members& members, IpcRegion region, const std::vector<Card>& cards);

  /// Returns once all ranks have come here, or after kPatience: then the region stays.
  ~IpcEngine() override;

  std::string_view name() const override { return "ipc"; }
  std::optional<std::string> why_not(const Description& description) const override;
  std::size_t best_below() const override;
  void enqueue(const Request& request, Stream& stream, const Checkpoint& checkpoint) override;
  bool is_sound() const override { return differs_.get() == 0; }
  std::optional<Error> failure() override;
  void abort() noexcept override;

 private:
  bool has_left() noexcept;

  const std::vector<int> world_ranks_;
  IpcRegion region_;
  std::vector<cuda::PeerMemory> opened_;
  cuda::HostFlag is_aborted_;
  cuda::HostFlag differs_;  ///< A group rank + 1 that calls something else.
  kernels::cuda::OneShotRanks ranks_;
  Stream* stream_ = nullptr;  ///< Of the operations so far; outlives the engine.
  bool has_aborted_ = false;
};

}  // namespace trireme::collectives
