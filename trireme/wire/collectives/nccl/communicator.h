#pragma once

#include <optional>

#include "trireme/wire/collectives/device/device_engine.h"
#include "trireme/wire/collectives/nccl/library.h"

namespace trireme::collectives::internal {

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
