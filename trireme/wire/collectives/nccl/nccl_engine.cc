#include "trireme/wire/collectives/nccl/nccl_engine.h"

#include <algorithm>

#include "trireme/base/cuda/stream.h"
#include "trireme/kernels/half.h"
#include "trireme/wire/collectives/device/connect.h"
#include "trireme/wire/collectives/device/device_engine.h"

namespace trireme::collectives::internal {

using kernels::ReduceOp;

ncclDataType_t nccl_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF64:
      return ncclFloat64;
    case Dtype::kF32:
      return ncclFloat32;
    case Dtype::kF16:
      return ncclFloat16;
    case Dtype::kBf16:
      return ncclBfloat16;
    case Dtype::kI64:
      return ncclInt64;
    case Dtype::kI32:
      return ncclInt32;
    case Dtype::kI8:
      return ncclInt8;
    case Dtype::kU8:
    case Dtype::kBool:
      return ncclUint8;
    default:
      throw Error(ErrorKind::kInvalidArgument, "NCCL reduces no " + std::string(to_text(dtype)));
  }
}

ncclRedOp_t nccl_op(Dtype dtype, ReduceOp op) {
  const bool is_bool = dtype == Dtype::kBool;
  switch (op) {
    case ReduceOp::kSum:
      return is_bool ? ncclMax : ncclSum;  // of 0 and 1: or
    case ReduceOp::kRoundedSum:
      return ncclSum;
    case ReduceOp::kProduct:
      return is_bool ? ncclMin : ncclProd;  // and
    case ReduceOp::kMin:
      return ncclMin;
    case ReduceOp::kMax:
      return ncclMax;
    case ReduceOp::kAverage:
      return ncclAvg;
    default:
      throw Error(ErrorKind::kInvalidArgument, "NCCL has no " + std::string(to_text(op)));
  }
}

NcclEngine::NcclEngine(const NcclLibrary& library, const Members& members, const Device& device,
                       HostExchange& exchange)
    : library_(library),
      size_(members.size()),
      rank_(members.group_rank),
      device_(device),
      exchange_(exchange) {}

std::optional<std::string> NcclEngine::why_not(const Description& description) const {
  return why_not_nccl(description);
}

void NcclEngine::check(const char* call, ncclResult_t code) const {
  // Inside a group, and of a communicator that does not block, it may be under way: see `run`.
  if (code != ncclSuccess && code != ncclInProgress) throw library_.problem(call, code);
}

void NcclEngine::connect(const Checkpoint& checkpoint) {
  ncclUniqueId id{};
  // Where it fails on rank 0 the others learn it from the world's failure.
  if (rank_ == 0) check("ncclGetUniqueId", library_.get_unique_id(&id));
  exchange_.broadcast(std::as_writable_bytes(std::span(id.internal)));
  communicator_.emplace(library_, Communicator::Place{id, size_, rank_}, checkpoint);
}

ncclRedOp_t NcclEngine::make_op(const Request& request, const Checkpoint& checkpoint) {
  const Description& description = request.description;
  if (description.reduce != ReduceOp::kScaledSum) {
    return nccl_op(description.dtype, description.reduce);
  }
  // NCCL reads the scale as an element.
  const auto f32 = static_cast<float>(request.scale);
  const kernels::F16 f16 = kernels::to_f16(f32);
  const kernels::Bf16 bf16 = kernels::to_bf16(f32);
  const void* scale = &request.scale;
  if (description.dtype == Dtype::kF32) scale = &f32;
  if (description.dtype == Dtype::kF16) scale = &f16;
  if (description.dtype == Dtype::kBf16) scale = &bf16;
  ncclRedOp_t op = ncclSum;
  const ncclResult_t code =
      library_.make_scaled_sum(&op, const_cast<void*>(scale), nccl_type(description.dtype),
                               ncclScalarHostImmediate, communicator_->handle());
  communicator_->finish("ncclRedOpCreatePreMulSum", code, checkpoint);
  return op;
}

void NcclEngine::all_reduce(const Request& request, ncclRedOp_t op) {
  std::byte* data = request.data.bytes.data();
  const auto count = static_cast<std::size_t>(request.data.count());
  const ncclDataType_t type = nccl_type(request.data.dtype);
  if (request.description.operation == Collective::kReduce) {
    return check("ncclReduce",
                 library_.reduce(data, data, count, type, op, request.description.root,
                                 communicator_->handle(), stream_));
  }
  check("ncclAllReduce",
        library_.all_reduce(data, data, count, type, op, communicator_->handle(), stream_));
}

namespace {

bool are_equal(std::span<const Chunk> parts) {
  return std::ranges::all_of(parts,
                             [&](const Chunk& part) { return part.size() == parts[0].size(); });
}

}  // namespace

/// Parts of one size have an operation of their own.
void NcclEngine::reduce_parts(const Request& request, ncclRedOp_t op) {
  const ncclDataType_t type = nccl_type(request.data.dtype);
  if (are_equal(request.parts)) {
    const Elements own = request.data.part(request.parts[rank_]);
    return check("ncclReduceScatter",
                 library_.reduce_scatter(request.data.bytes.data(), own.bytes.data(),
                                         static_cast<std::size_t>(own.count()), type, op,
                                         communicator_->handle(), stream_));
  }
  for (int i = 0; i < size_; ++i) {
    const Elements part = request.data.part(request.parts[i]);
    if (part.bytes.empty()) continue;
    std::byte* data = part.bytes.data();
    check("ncclReduce", library_.reduce(data, data, static_cast<std::size_t>(part.count()), type,
                                        op, i, communicator_->handle(), stream_));
  }
}

void NcclEngine::gather_parts(const Request& request) {
  if (are_equal(request.parts)) {
    const Elements own = request.data.part(request.parts[rank_]);
    return check("ncclAllGather",
                 library_.all_gather(own.bytes.data(), request.data.bytes.data(), own.bytes.size(),
                                     ncclUint8, communicator_->handle(), stream_));
  }
  for (int i = 0; i < size_; ++i) {
    const Elements part = request.data.part(request.parts[i]);
    if (part.bytes.empty()) continue;
    std::byte* data = part.bytes.data();
    check("ncclBroadcast", library_.broadcast(data, data, part.bytes.size(), ncclUint8, i,
                                              communicator_->handle(), stream_));
  }
}

void NcclEngine::exchange_parts(const Request& request) {
  for (int i = 0; i < size_; ++i) {
    const auto& send = request.sends[i];
    const auto& recv = request.recvs[i];
    if (!send.empty()) {
      check("ncclSend", library_.send(send.data(), send.size(), ncclUint8, i,
                                      communicator_->handle(), stream_));
    }
    if (!recv.empty()) {
      check("ncclRecv", library_.recv(recv.data(), recv.size(), ncclUint8, i,
                                      communicator_->handle(), stream_));
    }
  }
}

void NcclEngine::barrier() {
  if (!token_) token_.emplace(device_.index, sizeof(std::int32_t));
  std::byte* data = token_->bytes().data();
  check("ncclAllReduce",
        library_.all_reduce(data, data, 1, ncclInt32, ncclSum, communicator_->handle(), stream_));
}

void NcclEngine::broadcast(const Request& request) {
  std::byte* data = request.data.bytes.data();
  check("ncclBroadcast",
        library_.broadcast(data, data, request.data.bytes.size(), ncclUint8,
                           request.description.root, communicator_->handle(), stream_));
}

/// Inside a group of NCCL's. Without elements it is a barrier, as on a processor.
void NcclEngine::call(const Request& request, ncclRedOp_t op) {
  const Collective operation = request.description.operation;
  if (operation == Collective::kGather || operation == Collective::kScatter ||
      operation == Collective::kAllToAll) {
    return exchange_parts(request);
  }
  if (request.data.bytes.empty()) return barrier();
  switch (operation) {
    case Collective::kReduceScatter:
      return reduce_parts(request, op);
    case Collective::kAllGather:
      return gather_parts(request);
    case Collective::kBroadcast:
      return broadcast(request);
    default:
      return all_reduce(request, op);
  }
}

void NcclEngine::run(const Request& request, const Checkpoint& checkpoint) {
  const Collective operation = request.description.operation;
  const bool reduces = operation == Collective::kAllReduce || operation == Collective::kReduce ||
                       operation == Collective::kReduceScatter;
  const ncclRedOp_t op = reduces ? make_op(request, checkpoint) : ncclSum;
  check("ncclGroupStart", library_.group_start());
  std::optional<Error> error;
  try {
    call(request, op);
  } catch (const Error& thrown) {
    error = thrown;
  }
  const ncclResult_t code = library_.group_end();  // in any case: a group that is open holds all
  if (error) throw Error(*error);
  communicator_->finish("ncclGroupEnd", code, checkpoint);
  if (request.description.reduce == ReduceOp::kScaledSum && reduces) {
    check("ncclRedOpDestroy", library_.destroy_op(op, communicator_->handle()));
  }
}

void NcclEngine::enqueue(const Request& request, Stream& stream, const Checkpoint& checkpoint) {
  if (!communicator_) connect(checkpoint);
  stream_ = cuda::handle_of(stream);
  run(request, checkpoint);
}

std::optional<Error> NcclEngine::failure() {
  return communicator_ ? communicator_->failure() : std::nullopt;
}

void NcclEngine::abort() noexcept {
  if (communicator_) communicator_->abort();
}

}  // namespace trireme::collectives::internal

namespace trireme::collectives {

std::optional<Error> why_no_nccl() {
  try {
    internal::load_nccl();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

std::unique_ptr<DeviceEngine> make_nccl_engine(const Members& members, const Device& device,
                                               HostExchange& exchange) {
  return std::make_unique<internal::NcclEngine>(internal::load_nccl(), members, device, exchange);
}

}  // namespace trireme::collectives
