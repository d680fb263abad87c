#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "trireme/base/device.h"
#include "trireme/error.h"
#include "trireme/wire/collectives/device/host_exchange.h"
#include "trireme/wire/collectives/request.h"

namespace trireme::collectives {

/// Called again and again by what waits for other ranks; throws where that is over.
using Checkpoint = std::function<void()>;

/// A way to do the operations of a group on its GPUs: NCCL, or kernels over memory that all reach.
///
/// Threads  caller-synchronised.
class DeviceEngine {
 public:
  virtual ~DeviceEngine() = default;

  virtual std::string_view name() const = 0;

  /// Why it cannot do that, and what to do; nothing where it can. The same on all ranks.
  virtual std::optional<std::string> why_not(const Description& description) const = 0;

  /// Buffers beyond it are better left to another engine.
  virtual std::size_t best_below() const { return std::numeric_limits<std::size_t>::max(); }

  /// Gives the operation to the stream, on the current device. The first may block until all ranks
  /// have given it; none waits for the GPU.
  ///
  /// request   only what `why_not` allows; lent until the stream has done it.
  virtual void enqueue(const Request& request, Stream& stream, const Checkpoint& checkpoint) = 0;

  /// Whether what the stream has done is what was asked for; else `failure` says why not. Any
  /// thread.
  virtual bool is_sound() const { return true; }

  /// What has gone wrong since on a GPU or between them.
  virtual std::optional<Error> failure() = 0;

  /// Ends what is under way on this GPU, which may leave buffers half done. No call may follow.
  virtual void abort() noexcept = 0;
};

/// Why there is no NCCL for this build and machine; nothing where there is. Loads it.
std::optional<Error> why_no_nccl();

/// The operations of a group by NCCL, which is loaded for it. Ranks connect in the first one that
/// it does, within the group's deadline.
///
/// device    a GPU that no other rank of the group has.
/// exchange  outlives the engine.
/// Errors    kUnavailable where there is no NCCL.
std::unique_ptr<DeviceEngine> make_nccl_engine(const Members& members, const Device& device,
                                               HostExchange& exchange);

}  // namespace trireme::collectives
