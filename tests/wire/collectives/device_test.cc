// Groups whose buffers are in GPUs' memory, as far as a machine without one can show: rules, the
// queue over a fake stream, what ranks tell each other. gpu_test.cc has the rest.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/wire/collectives/fake_device.h"
#include "tests/wire/collectives/group_world.h"
#include "trireme/base/cuda/stream.h"
#include "trireme/wire/collectives/device/connect.h"
#include "trireme/wire/collectives/device/device_backend.h"
#include "trireme/wire/collectives/device/host_exchange.h"

namespace trireme::collectives::test {
namespace {

using namespace std::chrono_literals;
using kernels::ReduceOp;
using testing::ElementsAre;
using testing::HasSubstr;
using transport::test::error_of;
using transport::test::error_of_call;
using transport::test::wait_for;
using Gpus = std::vector<std::shared_ptr<FakeGpu>>;

Members members_of(Endpoint& endpoint, std::chrono::milliseconds deadline = 20s) {
  const auto flight =
      std::make_shared<FlightRecorder>(FlightOwner{.world_rank = endpoint.rank(),
                                                   .world_size = endpoint.world_size(),
                                                   .group_rank = endpoint.rank(),
                                                   .group_size = endpoint.world_size(),
                                                   .group = "gpus"});
  return {.endpoint = endpoint,
          .ranks = first_ranks(endpoint.world_size()),
          .group_rank = endpoint.rank(),
          .name = "gpus",
          .id = 5,
          .deadline = deadline,
          .flight = flight};
}

Request sum_of(std::span<float> data) {
  return {.description = {.operation = Collective::kAllReduce,
                          .dtype = Dtype::kF32,
                          .count = std::ssize(data)},
          .data = data};
}

using Body = std::function<void(DeviceBackend&, FakeGpu&, Endpoint&)>;
using Prepare = std::function<void(DeviceParts&)>;

struct FakeOptions {
  std::chrono::milliseconds deadline = 20s;
  Prepare prepare = [](DeviceParts&) {};
};

/// Runs `body` on all ranks of a world with a fake GPU each; what each threw.
Errors run_fake(int num_ranks, const Body& body, const FakeOptions& options = {}) {
  Endpoints endpoints = transport::test::make_world(Backend::kSim, num_ranks);
  return transport::test::run_ranks(endpoints, [&](Endpoint& endpoint) {
    const auto gpu = std::make_shared<FakeGpu>();
    DeviceParts parts = fake_parts(gpu);
    options.prepare(parts);
    {
      DeviceBackend backend(members_of(endpoint, options.deadline), std::move(parts));
      body(backend, *gpu, endpoint);
    }
    endpoint.shutdown(20s);
  });
}

// ---- Rules

Description reduction(Dtype dtype, ReduceOp op, Order order) {
  return {.operation = Collective::kAllReduce,
          .dtype = dtype,
          .reduce = op,
          .count = 4,
          .order = order};
}

TEST(DeviceRules, NcclHasNoCanonicalOrderOfReals) {
  for (const Dtype dtype : {Dtype::kF64, Dtype::kF32, Dtype::kF16, Dtype::kBf16}) {
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kProduct,
                              ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kScaledSum}) {
      const auto reason = why_not_nccl(reduction(dtype, op, Order::kCanonical));
      ASSERT_TRUE(reason.has_value());
      EXPECT_THAT(*reason, HasSubstr("kAny"));
      EXPECT_FALSE(why_not_nccl(reduction(dtype, op, Order::kAny)));
    }
  }
}

TEST(DeviceRules, NcclHasNoBitwiseOperations) {
  EXPECT_TRUE(why_not_nccl(reduction(Dtype::kI16, ReduceOp::kSum, Order::kAny)));
  for (const Dtype dtype : {Dtype::kI64, Dtype::kI32, Dtype::kI8, Dtype::kU8, Dtype::kBool}) {
    for (const Order order : {Order::kCanonical, Order::kAny}) {
      EXPECT_FALSE(why_not_nccl(reduction(dtype, ReduceOp::kSum, order)));
      for (const ReduceOp op : {ReduceOp::kAnd, ReduceOp::kOr, ReduceOp::kXor}) {
        EXPECT_TRUE(why_not_nccl(reduction(dtype, op, order))) << kernels::to_text(op);
      }
    }
  }
}

TEST(DeviceRules, MovesHaveNoOrder) {
  for (const Collective operation : {Collective::kAllGather, Collective::kBroadcast,
                                     Collective::kAllToAll, Collective::kBarrier}) {
    EXPECT_FALSE(why_not_nccl({.operation = operation}));
  }
}

TEST(DeviceRules, KernelsHaveAllReduceAndBarrierOnly) {
  for (const Order order : {Order::kCanonical, Order::kAny}) {
    EXPECT_FALSE(why_not_ipc(reduction(Dtype::kBf16, ReduceOp::kSum, order)));
    EXPECT_FALSE(why_not_ipc(reduction(Dtype::kU8, ReduceOp::kXor, order)));
  }
  EXPECT_FALSE(why_not_ipc({.operation = Collective::kBarrier}));
  EXPECT_TRUE(why_not_ipc(reduction(Dtype::kC64, ReduceOp::kSum, Order::kAny)));
  for (const Collective operation :
       {Collective::kReduce, Collective::kReduceScatter, Collective::kAllGather,
        Collective::kBroadcast, Collective::kAllToAll}) {
    EXPECT_THAT(*why_not_ipc({.operation = operation}), HasSubstr("only all_reduce and barrier"));
  }
}

TEST(DeviceRules, TheFirstEngineThatIsBestForTheSizeIsTaken) {
  const auto gpu = std::make_shared<FakeGpu>();
  std::vector<std::unique_ptr<DeviceEngine>> engines;
  engines.push_back(std::make_unique<FakeEngine>(gpu, "refuses", 1 << 20, "it has no time"));
  engines.push_back(std::make_unique<FakeEngine>(gpu, "small", 1024));
  engines.push_back(std::make_unique<FakeEngine>(gpu, "large", 1 << 20));
  std::vector<float> data(1000);
  EXPECT_EQ(choose_engine(engines, sum_of(std::span(data).first(256)), "").name(), "small");
  EXPECT_EQ(choose_engine(engines, sum_of(std::span(data).first(257)), "").name(), "large");
  engines.pop_back();
  EXPECT_EQ(choose_engine(engines, sum_of(data), "").name(), "small");
  engines.pop_back();
  const Error error = error_of_call([&] { choose_engine(engines, sum_of(data), "no NCCL here"); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(error.message(), HasSubstr("it has no time; no NCCL here"));
}

// ---- What ranks tell each other

TEST(DeviceCards, EveryRankHasThoseOfAll) {
  Endpoints endpoints = transport::test::make_world(Backend::kSim, 3);
  transport::test::expect_no_errors(transport::test::run_ranks(endpoints, [](Endpoint& endpoint) {
    const Members members = members_of(endpoint);
    HostExchange exchange(members);
    const auto rank = static_cast<std::uint64_t>(endpoint.rank());
    const auto cards =
        exchange_cards(members, exchange, {.process = process_id(), .address = 100 + rank});
    for (std::uint64_t i = 0; i < 3; ++i) {
      EXPECT_EQ(cards[i].address, 100 + i);
      EXPECT_EQ(cards[i].process, process_id());
    }
    EXPECT_TRUE(find_sharing(cards).has_value());
    EXPECT_TRUE(all_agree(members, exchange, true));
    EXPECT_FALSE(all_agree(members, exchange, rank != 1));
    endpoint.shutdown(20s);
  }));
}

TEST(DeviceCards, GpusOfTheirOwnAreNotShared) {
  std::vector<Card> cards(3);
  cards[1].device[0] = std::byte{1};
  cards[2].device[15] = std::byte{1};
  EXPECT_FALSE(find_sharing(cards));
  cards[2].device = cards[1].device;
  EXPECT_EQ(find_sharing(cards)->first, 1);
  EXPECT_EQ(find_sharing(cards)->second, 2);
}

// ---- The queue

TEST(DeviceQueue, WorksEndWhenTheStreamHasDoneThem) {
  transport::test::expect_no_errors(
      run_fake(2, [](DeviceBackend& backend, FakeGpu& gpu, Endpoint&) {
        std::vector<float> data(4);
        const WorkPtr first = backend.submit(sum_of(data));
        const WorkPtr second = backend.submit({.description = {.operation = Collective::kBarrier}});
        EXPECT_EQ(gpu.num_given, 2) << "a call does not wait for the stream";
        EXPECT_FALSE(first->is_done());
        EXPECT_FALSE(first->wait_for(1ms));
        gpu.num_done = 1;
        EXPECT_TRUE(first->is_done());
        EXPECT_FALSE(second->is_done());
        gpu.num_done = 2;
        EXPECT_TRUE(second->wait_for(20s));
        EXPECT_THAT(gpu.operations, ElementsAre(Collective::kAllReduce, Collective::kBarrier));
      }));
}

TEST(DeviceQueue, AStreamMayGoOnWithoutTheHost) {
  transport::test::expect_no_errors(
      run_fake(1, [](DeviceBackend& backend, FakeGpu& gpu, Endpoint&) {
        std::vector<float> data(4);
        const WorkPtr work = backend.submit(sum_of(data));
        ASSERT_NE(end_of(*work), nullptr);
        EXPECT_FALSE(end_of(*work)->is_done());
        FakeStream other(std::make_shared<FakeGpu>());
        run_after(other, *work);  // would not return if it waited
        gpu.num_done = 1;
        wait_for(work);
      }));
}

TEST(DeviceQueue, ItsThreadTellsTheEndToWhoeverListens) {
  transport::test::expect_no_errors(
      run_fake(1, [](DeviceBackend& backend, FakeGpu& gpu, Endpoint&) {
        std::vector<float> data(4);
        const auto completions = std::make_shared<transport::Completions>();
        backend.submit(sum_of(data))->tell_end(completions, 7);
        gpu.num_done = 1;
        EXPECT_THAT(completions->take(std::chrono::steady_clock::now() + 20s), ElementsAre(7));
      }));
}

TEST(DeviceQueue, OwnBytesOfAnAllGatherComeToTheirPlace) {
  transport::test::expect_no_errors(
      run_fake(2, [](DeviceBackend& backend, FakeGpu& gpu, Endpoint& endpoint) {
        gpu.does_at_once = true;
        std::vector<std::byte> all(8);
        const std::vector<std::byte> mine(4, std::byte{9});
        wait_for(backend.submit({.description = {.operation = Collective::kAllGather, .count = 8},
                                 .data = {all, Dtype::kU8},
                                 .parts = {{0, 4}, {4, 8}},
                                 .mine = mine}));
        EXPECT_EQ(all[endpoint.rank() * 4], std::byte{9});
        EXPECT_EQ(all[4 - endpoint.rank() * 4], std::byte{0});
      }));
}

TEST(DeviceQueue, TheDeadlineEndsAllAndAborts) {
  const auto body = [](DeviceBackend& backend, FakeGpu& gpu, Endpoint& endpoint) {
    std::vector<float> data(4);
    gpu.does_at_once = endpoint.rank() == 1;  // it calls the first only
    wait_for(backend.submit(sum_of(data)));
    if (endpoint.rank() == 1) {
      while (!endpoint.failure()) std::this_thread::sleep_for(1ms);
      return;
    }
    const WorkPtr late = backend.submit(sum_of(data));
    const Error error = error_of(late);
    EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
    EXPECT_THAT(error.message(), HasSubstr("waited 300 ms for rank 1"));
    EXPECT_EQ(error.context().operation, "all_reduce");
    EXPECT_EQ(error.context().sequence, 1);
    EXPECT_TRUE(gpu.is_aborted);
    EXPECT_EQ(error_of(backend.submit(sum_of(data))).kind(), ErrorKind::kTimeout) << "and later";
  };
  const Errors errors = run_fake(2,
                                 [&](DeviceBackend& backend, FakeGpu& gpu, Endpoint& endpoint) {
                                   if (endpoint.rank() == 0) gpu.num_done = 1;
                                   body(backend, gpu, endpoint);
                                 },
                                 {.deadline = 300ms});
  for (const auto& error : errors) {  // of the endpoint's shutdown
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->kind(), ErrorKind::kTimeout);
  }
}

TEST(DeviceQueue, RanksThatWaitInDifferentOperationsFindOut) {
  const Errors errors = run_fake(3, [](DeviceBackend& backend, FakeGpu& gpu, Endpoint& endpoint) {
    std::vector<float> data(4 + endpoint.rank() / 2);
    const Error error = error_of(backend.submit(sum_of(data)));
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.message(), HasSubstr("all_reduce of 4 f32"));
    EXPECT_THAT(error.message(), HasSubstr("all_reduce of 5 f32"));
    EXPECT_TRUE(gpu.is_aborted);
  });
  EXPECT_TRUE(errors[0].has_value());
}

TEST(DeviceQueue, CallsAreComparedBeforeTheyStartWhereThatIsWanted) {
  const FakeOptions checked{.prepare = [](DeviceParts& parts) { parts.checks_calls = true; }};
  transport::test::expect_no_errors(run_fake(
      2,
      [](DeviceBackend& backend, FakeGpu& gpu, Endpoint&) {
        gpu.does_at_once = true;
        std::vector<float> data(4);
        wait_for(backend.submit(sum_of(data)));
        EXPECT_EQ(gpu.num_given, 1);
      },
      checked));
  const auto different = [](DeviceBackend& backend, FakeGpu& gpu, Endpoint& endpoint) {
    std::vector<float> data(4 + endpoint.rank());
    EXPECT_EQ(error_of(backend.submit(sum_of(data))).kind(), ErrorKind::kInvalidArgument);
    EXPECT_EQ(gpu.num_given, 0) << "nothing was given to the stream";
  };
  EXPECT_TRUE(run_fake(2, different, checked)[0].has_value());
}

TEST(DeviceQueue, HashesAreComparedWhereTheyAreGiven) {
  const auto body = [](DeviceBackend& backend, FakeGpu& gpu, Endpoint& endpoint) {
    gpu.does_at_once = true;
    std::vector<float> data(4);
    Request request = sum_of(data);
    request.description.hash = endpoint.rank() == 1 ? 8 : 7;
    EXPECT_EQ(error_of(backend.submit(request)).kind(), ErrorKind::kCorruptData);
  };
  EXPECT_TRUE(run_fake(3, body)[0].has_value());
}

TEST(DeviceQueue, AnEnginesFailureEndsAllRanks) {
  const Errors errors = run_fake(2, [](DeviceBackend& backend, FakeGpu& gpu, Endpoint& endpoint) {
    std::vector<float> data(4);
    const WorkPtr work = backend.submit(sum_of(data));
    gpu.is_broken = endpoint.rank() == 1;
    const Error error = error_of(work);
    EXPECT_THAT(error.message(), HasSubstr("the fabric is broken"));
    EXPECT_EQ(error.context().rank, 1) << "the first cause, on both ranks";
    EXPECT_TRUE(gpu.is_aborted);
  });
  EXPECT_TRUE(errors[0].has_value());
}

TEST(DeviceQueue, WhatIsDoneAndWorthNothingIsAFailure) {
  const Errors errors = run_fake(1, [](DeviceBackend& backend, FakeGpu& gpu, Endpoint&) {
    std::vector<float> data(4);
    gpu.is_unsound = true;
    gpu.does_at_once = true;
    EXPECT_THAT(error_of(backend.submit(sum_of(data))).message(), HasSubstr("broken"));
  });
  EXPECT_TRUE(errors[0].has_value());
}

TEST(DeviceQueue, WhatNoEngineCanDoIsRefusedAndHarmsNothing) {
  const FakeOptions refusing{.prepare = [](DeviceParts& parts) {
    parts.connect = [](HostExchange&) {
      DeviceEngines engines;
      engines.why_no_other = "rank 0 has no NCCL";
      return engines;
    };
  }};
  transport::test::expect_no_errors(run_fake(
      2,
      [](DeviceBackend& backend, FakeGpu&, Endpoint& endpoint) {
        std::vector<float> data(4);
        const Error error = error_of_call([&] { backend.submit(sum_of(data)); });
        EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
        EXPECT_THAT(error.message(), HasSubstr("rank 0 has no NCCL"));
        EXPECT_FALSE(endpoint.failure().has_value());
      },
      refusing));
}

TEST(DeviceQueue, ClosingWithOperationsUnderWayAborts) {
  const Errors errors = run_fake(2, [](DeviceBackend& backend, FakeGpu&, Endpoint&) {
    std::vector<float> data(4);
    backend.submit(sum_of(data));
  });
  for (const auto& error : errors) {
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->kind(), ErrorKind::kCancelled);
  }
}

// ---- Without a GPU

TEST(DeviceGroup, SaysThatThereIsNoGpu) {
  if (!cuda::why_no_gpu()) GTEST_SKIP() << "there is a GPU";
  Endpoints endpoints = transport::test::make_world(Backend::kSim, 1);
  const Error error = error_of_call([&] {
    const Group group(*endpoints[0], {0}, {.name = "gpus", .device = {DeviceKind::kCuda, 0}});
  });
  EXPECT_EQ(error.kind(), ErrorKind::kUnavailable);
  EXPECT_THAT(error.message(), HasSubstr("use device cpu"));
}

}  // namespace
}  // namespace trireme::collectives::test
