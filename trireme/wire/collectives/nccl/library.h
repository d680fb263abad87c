#pragma once

#include <nccl.h>

#include <string>

#include "trireme/base/error.h"

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

}  // namespace trireme::collectives::internal
