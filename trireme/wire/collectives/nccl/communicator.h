#pragma once

#include <nccl.h>

#include <optional>
#include <string>

#include "trireme/error.h"
#include "trireme/wire/collectives/device/device_engine.h"

namespace trireme::collectives::internal {

/// What is used of NCCL. Immutable. Tests fill it with functions of their own.
struct NcclLibrary {
  decltype(&::ncclGetVersion) get_version = nullptr;
  decltype(&::ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&::ncclCommInitRankConfig) init_rank = nullptr;
  decltype(&::ncclCommFinalize) finalize = nullptr;
  decltype(&::ncclCommDestroy) destroy = nullptr;
  decltype(&::ncclCommAbort) abort = nullptr;
  decltype(&::ncclCommGetAsyncError) get_async_error = nullptr;
  decltype(&::ncclGetErrorString) error_text = nullptr;
  decltype(&::ncclGetLastError) last_error = nullptr;
  decltype(&::ncclAllReduce) all_reduce = nullptr;
  decltype(&::ncclReduce) reduce = nullptr;
  decltype(&::ncclReduceScatter) reduce_scatter = nullptr;
  decltype(&::ncclAllGather) all_gather = nullptr;
  decltype(&::ncclBroadcast) broadcast = nullptr;
  decltype(&::ncclSend) send = nullptr;
  decltype(&::ncclRecv) recv = nullptr;
  decltype(&::ncclGroupStart) group_start = nullptr;
  decltype(&::ncclGroupEnd) group_end = nullptr;
  decltype(&::ncclRedOpCreatePreMulSum) make_scaled_sum = nullptr;
  decltype(&::ncclRedOpDestroy) destroy_op = nullptr;

  /// kInvalidArgument for misuse, kPeerLost where another rank is the cause, else kIo.
  Error problem(const std::string& call, ncclResult_t code) const;
};

/// Loads libnccl.so.2, which then stays: it has threads.
///
/// Errors   kUnavailable, saying what to install, where it is missing or too old.
NcclLibrary load_nccl();

/// Ranks that NCCL has connected. Nothing of it blocks in NCCL: where NCCL goes on in threads of
/// its own, calls wait here, under a checkpoint.
///
/// Threads  caller-synchronised.
class Communicator {
 public:
  struct Place {
    ncclUniqueId id;  ///< Of the group, the same on all ranks.
    int size;
    int rank;
  };

  /// On the current device. Blocks until all ranks have called it.
  ///
  /// library   outlives it.
  Communicator(const NcclLibrary& library, const Place& place, const Checkpoint& checkpoint);

  /// An orderly end where all ranks come here within kPatience, else an abort.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  ncclComm_t handle() const { return handle_; }

  /// Throws where `code`, which `call` has returned, is an error; waits while NCCL goes on with it.
  void finish(const char* call, ncclResult_t code, const Checkpoint& checkpoint);

  std::optional<Error> failure();
  void abort() noexcept;

 private:
  ncclResult_t state() const;

  const NcclLibrary& library_;
  ncclComm_t handle_ = nullptr;  ///< Null once it has ended.
};

}  // namespace trireme::collectives::internal
