#pragma once

#include <optional>

#include "trireme/base/cuda/memory.h"
#include "trireme/wire/collectives/device/device_engine.h"
#include "trireme/wire/collectives/device/host_exchange.h"
#include "trireme/wire/collectives/nccl/communicator.h"

struct CUstream_st;

namespace trireme::collectives::internal {

/// NCCL's name for a type of ours that reduces; bool are bytes, 0 or 1.
ncclDataType_t nccl_type(Dtype dtype);

/// NCCL's operation of elements of that type, but for scaled sums.
ncclRedOp_t nccl_op(Dtype dtype, kernels::ReduceOp op);

/// The operations of a group by a library of NCCL's functions.
class NcclEngine final : public DeviceEngine {
 public:
  /// members   this rank's place is taken from them.
  NcclEngine(const NcclLibrary& library, const Members& members, const Device& device,
             HostExchange& exchange);

  std::string_view name() const override { return "nccl"; }
  std::optional<std::string> why_not(const Description& description) const override;
  void enqueue(const Request& request, Stream& stream, const Checkpoint& checkpoint) override;
  std::optional<Error> failure() override;
  void abort() noexcept override;

 private:
  void connect(const Checkpoint& checkpoint);
  void run(const Request& request, const Checkpoint& checkpoint);
  void call(const Request& request, ncclRedOp_t op);
  void broadcast(const Request& request);
  void all_reduce(const Request& request, ncclRedOp_t op);
  void reduce_parts(const Request& request, ncclRedOp_t op);
  void gather_parts(const Request& request);
  void exchange_parts(const Request& request);
  void barrier();
  ncclRedOp_t make_op(const Request& request, const Checkpoint& checkpoint);
  void check(const char* call, ncclResult_t code) const;

  const NcclLibrary library_;
  const int size_;
  const int rank_;
  const Device device_;
  HostExchange& exchange_;
  std::optional<cuda::DeviceMemory> token_;  ///< What a barrier sums.
  std::optional<Communicator> communicator_;
  CUstream_st* stream_ = nullptr;  ///< Of the operation under way.
};

}  // namespace trireme::collectives::internal
