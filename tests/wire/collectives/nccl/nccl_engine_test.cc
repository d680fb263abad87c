// What is asked of NCCL, with functions in its place that write it down: no GPU, no NCCL.

#include "trireme/wire/collectives/nccl/nccl_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/wire/collectives/group_world.h"
#include "trireme/base/cuda/stream.h"
#include "trireme/kernels/half.h"
#include "trireme/wire/collectives/device/device_engine.h"

namespace trireme::collectives::internal {
namespace {

using namespace std::chrono_literals;
using kernels::ReduceOp;
using test::Endpoint;
using testing::ElementsAre;
using testing::HasSubstr;

/// What the functions below were called for. They have no other way to it: one test at a time.
struct Script {
  std::vector<std::string> calls;
  int num_pending = 0;  ///< How often the state is still `in progress`.
  ncclResult_t state = ncclSuccess;
  ncclResult_t of_all_reduce = ncclSuccess;
  double scale = 0;
};
Script script;  // NOLINT: as said

void note(const std::string& call) { script.calls.push_back(call); }

std::string text(std::size_t count, ncclDataType_t type, ncclRedOp_t op) {
  return std::to_string(count) + " of type " + std::to_string(type) + " op " + std::to_string(op);
}

constexpr auto kScaled = static_cast<ncclRedOp_t>(77);

void fake_connections(NcclLibrary& library) {
  library.get_unique_id = [](ncclUniqueId* id) {
    id->internal[0] = 5;
    return ncclSuccess;
  };
  library.init_rank = [](ncclComm_t* comm, int size, ncclUniqueId id, int rank,
                         ncclConfig_t* config) {
    note("init " + std::to_string(rank) + " of " + std::to_string(size) + " blocking " +
         std::to_string(config->blocking) + " id " + std::to_string(id.internal[0]));
    *comm = reinterpret_cast<ncclComm_t>(&script);
    return ncclInProgress;
  };
  library.finalize = [](ncclComm_t) { return note("finalize"), ncclSuccess; };
  library.destroy = [](ncclComm_t) { return note("destroy"), ncclSuccess; };
  library.abort = [](ncclComm_t) { return note("abort"), ncclSuccess; };
  library.get_async_error = [](ncclComm_t, ncclResult_t* state) {
    *state = script.num_pending-- > 0 ? ncclInProgress : script.state;
    return ncclSuccess;
  };
  library.error_text = [](ncclResult_t) { return "it broke"; };
  library.last_error = [](ncclComm_t) { return "the cable"; };
}

void fake_reductions(NcclLibrary& library) {
  library.all_reduce = [](const void* from, void* to, std::size_t count, ncclDataType_t type,
                          ncclRedOp_t op, ncclComm_t, cudaStream_t) {
    note(std::string(from == to ? "" : "not in place: ") + "all_reduce " + text(count, type, op));
    return script.of_all_reduce;
  };
  library.reduce = [](const void*, void*, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                      int root, ncclComm_t, cudaStream_t) {
    note("reduce " + text(count, type, op) + " root " + std::to_string(root));
    return ncclSuccess;
  };
  library.reduce_scatter = [](const void*, void*, std::size_t count, ncclDataType_t type,
                              ncclRedOp_t op, ncclComm_t, cudaStream_t) {
    return note("reduce_scatter " + text(count, type, op)), ncclSuccess;
  };
}

void fake_moves(NcclLibrary& library) {
  library.all_gather = [](const void*, void*, std::size_t count, ncclDataType_t, ncclComm_t,
                          cudaStream_t) {
    return note("all_gather " + std::to_string(count)), ncclSuccess;
  };
  library.broadcast = [](const void*, void*, std::size_t count, ncclDataType_t, int root,
                         ncclComm_t, cudaStream_t) {
    note("broadcast " + std::to_string(count) + " root " + std::to_string(root));
    return ncclSuccess;
  };
  library.send = [](const void*, std::size_t count, ncclDataType_t, int peer, ncclComm_t,
                    cudaStream_t) {
    note("send " + std::to_string(count) + " to " + std::to_string(peer));
    return ncclSuccess;
  };
  library.recv = [](void*, std::size_t count, ncclDataType_t, int peer, ncclComm_t, cudaStream_t) {
    note("recv " + std::to_string(count) + " from " + std::to_string(peer));
    return ncclSuccess;
  };
}

NcclLibrary fake_library() {
  NcclLibrary library;
  fake_connections(library);
  fake_reductions(library);
  fake_moves(library);
  library.group_start = [] { return note("("), ncclSuccess; };
  library.group_end = [] { return note(")"), ncclInProgress; };
  library.make_scaled_sum = [](ncclRedOp_t* op, void* scalar, ncclDataType_t type,
                               ncclScalarResidence_t, ncclComm_t) {
    script.scale = type == ncclFloat64    ? *static_cast<double*>(scalar)
                   : type == ncclFloat32  ? double{*static_cast<float*>(scalar)}
                   : type == ncclBfloat16 ? double{to_f32(*static_cast<kernels::Bf16*>(scalar))}
                                          : double{to_f32(*static_cast<kernels::F16*>(scalar))};
    *op = kScaled;
    return ncclSuccess;
  };
  library.destroy_op = [](ncclRedOp_t, ncclComm_t) { return note("destroy op"), ncclSuccess; };
  return library;
}

const Checkpoint kNoLimit = [] {};

/// Rank 0 of a group of one, of which NCCL is told that it has more.
class Nccl : public testing::Test {
 protected:
  Nccl() : endpoints(transport::test::make_world(transport::test::Backend::kSim, 1)) {
    script = {};
  }

  Members members() {
    return {.endpoint = *endpoints[0],
            .ranks = {0},
            .group_rank = 0,
            .name = "gpus",
            .id = 1,
            .deadline = 20s};
  }

  /// What is asked for, after the connection.
  std::vector<std::string> calls_of(const Request& request) {
    const Members one = members();
    HostExchange exchange(one);
    Members two = one;
    two.ranks = {0, 1};
    NcclEngine engine(fake_library(), two, {}, exchange);
    engine.enqueue(request, *stream, kNoLimit);
    std::vector<std::string> calls = script.calls;
    calls.erase(calls.begin());
    return calls;
  }

  static Request reduction(Collective operation, Elements data, ReduceOp op) {
    return {.description = {.operation = operation,
                            .dtype = data.dtype,
                            .reduce = op,
                            .count = data.count(),
                            .root = 1},
            .data = data,
            .parts = {{0, data.count() / 2}, {data.count() / 2, data.count()}}};
  }

  transport::test::Endpoints endpoints;
  const std::unique_ptr<Stream> stream = make_stream({});
  std::vector<double> memory = std::vector<double>(64);
};

TEST_F(Nccl, ConnectsWithoutBlockingAndEndsInOrder) {
  script.num_pending = 3;
  {
    const NcclLibrary library = fake_library();
    const Communicator communicator(library, {.id = {}, .size = 2, .rank = 1}, kNoLimit);
  }
  EXPECT_THAT(script.calls, ElementsAre("init 1 of 2 blocking 0 id 0", "finalize", "destroy"));
}

TEST_F(Nccl, AConnectionThatIsNotMadeInTimeIsAborted) {
  script.num_pending = 1 << 30;
  const NcclLibrary library = fake_library();
  int num_looks = 0;
  const auto connect = [&] {
    const Communicator communicator(library, {.id = {}, .size = 2, .rank = 1}, [&] {
      if (++num_looks == 3) throw Error(ErrorKind::kTimeout, "late");
    });
  };
  EXPECT_EQ(transport::test::error_of_call(connect).kind(), ErrorKind::kTimeout);
  EXPECT_THAT(script.calls, ElementsAre("init 1 of 2 blocking 0 id 0", "abort"));
}

TEST_F(Nccl, SaysWhatNcclSays) {
  const NcclLibrary library = fake_library();
  Communicator communicator(library, {.id = {}, .size = 2, .rank = 1}, kNoLimit);
  EXPECT_FALSE(communicator.failure());
  script.state = ncclRemoteError;
  const auto error = communicator.failure();
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->kind(), ErrorKind::kPeerLost);
  EXPECT_THAT(error->message(), HasSubstr("it broke (the cable); NCCL_DEBUG=WARN says more"));
  communicator.abort();
  EXPECT_FALSE(communicator.failure()) << "of one that has ended";
  EXPECT_EQ(script.calls.back(), "abort");
}

TEST_F(Nccl, TypesAndOperationsHaveNames) {
  EXPECT_EQ(nccl_type(Dtype::kF64), ncclFloat64);
  EXPECT_EQ(nccl_type(Dtype::kF32), ncclFloat32);
  EXPECT_EQ(nccl_type(Dtype::kF16), ncclFloat16);
  EXPECT_EQ(nccl_type(Dtype::kBf16), ncclBfloat16);
  EXPECT_EQ(nccl_type(Dtype::kI64), ncclInt64);
  EXPECT_EQ(nccl_type(Dtype::kI32), ncclInt32);
  EXPECT_EQ(nccl_type(Dtype::kU8), ncclUint8);
  EXPECT_EQ(nccl_type(Dtype::kBool), ncclUint8);
  EXPECT_THROW(nccl_type(Dtype::kC64), Error);
  EXPECT_EQ(nccl_op(Dtype::kF32, ReduceOp::kSum), ncclSum);
  EXPECT_EQ(nccl_op(Dtype::kF32, ReduceOp::kAverage), ncclAvg);
  EXPECT_EQ(nccl_op(Dtype::kI64, ReduceOp::kProduct), ncclProd);
  EXPECT_EQ(nccl_op(Dtype::kF16, ReduceOp::kMin), ncclMin);
  EXPECT_EQ(nccl_op(Dtype::kF16, ReduceOp::kMax), ncclMax);
  EXPECT_EQ(nccl_op(Dtype::kBool, ReduceOp::kSum), ncclMax) << "or";
  EXPECT_EQ(nccl_op(Dtype::kBool, ReduceOp::kProduct), ncclMin) << "and";
  EXPECT_THROW(nccl_op(Dtype::kI32, ReduceOp::kXor), Error);
}

TEST_F(Nccl, ReductionsAreInPlace) {
  const Elements data = std::span(memory);
  EXPECT_THAT(calls_of(reduction(Collective::kAllReduce, data, ReduceOp::kSum)),
              ElementsAre("(", "all_reduce 64 of type 8 op 0", ")"));
  script = {};
  EXPECT_THAT(calls_of(reduction(Collective::kReduce, data, ReduceOp::kMax)),
              ElementsAre("(", "reduce 64 of type 8 op 2 root 1", ")"));
}

TEST_F(Nccl, PartsOfOneSizeHaveAnOperationOfTheirOwn) {
  const Elements data = std::span(memory);
  Request request = reduction(Collective::kReduceScatter, data, ReduceOp::kSum);
  EXPECT_THAT(calls_of(request), ElementsAre("(", "reduce_scatter 32 of type 8 op 0", ")"));
  script = {};
  request.parts = {{0, 48}, {48, 64}};
  EXPECT_THAT(calls_of(request), ElementsAre("(", "reduce 48 of type 8 op 0 root 0",
                                             "reduce 16 of type 8 op 0 root 1", ")"));
  script = {};
  Request gather{.description = {.operation = Collective::kAllGather},
                 .data = {data.bytes, Dtype::kU8},
                 .parts = {{0, 256}, {256, 512}}};
  EXPECT_THAT(calls_of(gather), ElementsAre("(", "all_gather 256", ")"));
  script = {};
  gather.parts = {{0, 0}, {0, 512}};
  EXPECT_THAT(calls_of(gather), ElementsAre("(", "broadcast 512 root 1", ")"));
}

TEST_F(Nccl, PartsOfAnySizesAreMessages) {
  const auto bytes = std::as_writable_bytes(std::span(memory));
  const Request request{.description = {.operation = Collective::kAllToAll},
                        .sends = {bytes.first(8), bytes.first(0)},
                        .recvs = {bytes.subspan(8, 8), bytes.subspan(16, 3)}};
  EXPECT_THAT(calls_of(request),
              ElementsAre("(", "send 8 to 0", "recv 8 from 0", "recv 3 from 1", ")"));
}

TEST_F(Nccl, NoElementsAreABarrier) {
  // The barrier's own element is in a GPU's memory, so without one this is as far as it comes.
  const Request nothing = reduction(Collective::kAllReduce, std::span<double>(), ReduceOp::kSum);
  if (cuda::why_no_gpu()) {
    const Error error = transport::test::error_of_call([&] { calls_of(nothing); });
    EXPECT_EQ(error.kind(), ErrorKind::kUnavailable);
    EXPECT_EQ(script.calls[2], ")");
  } else {
    EXPECT_THAT(calls_of(nothing), ElementsAre("(", "all_reduce 1 of type 2 op 0", ")"));
  }
}

TEST_F(Nccl, ScalesAreElements) {
  const auto bytes = std::as_writable_bytes(std::span(memory));
  for (const auto& [dtype, expected] :
       {std::pair{Dtype::kF64, 1.0 / 3}, std::pair{Dtype::kF32, double{1.0F / 3}},
        std::pair{Dtype::kF16, double{to_f32(kernels::to_f16(1.0F / 3))}},
        std::pair{Dtype::kBf16, double{to_f32(kernels::to_bf16(1.0F / 3))}}}) {
    script = {};
    Request request = reduction(Collective::kAllReduce, {bytes, dtype}, ReduceOp::kScaledSum);
    request.scale = 1.0 / 3;
    const auto calls = calls_of(request);
    EXPECT_EQ(script.scale, expected) << to_text(dtype);
    EXPECT_THAT(calls[1], HasSubstr("op 77"));
    EXPECT_EQ(calls.back(), "destroy op");
  }
}

TEST_F(Nccl, AGroupIsClosedWhereACallFails) {
  script.of_all_reduce = ncclInvalidArgument;
  const Error error = transport::test::error_of_call(
      [&] { calls_of(reduction(Collective::kAllReduce, std::span(memory), ReduceOp::kSum)); });
  EXPECT_THAT(error.message(), HasSubstr("NCCL's ncclAllReduce: it broke"));
  EXPECT_EQ(script.calls[3], ")");
}

}  // namespace
}  // namespace trireme::collectives::internal
