// Groups whose buffers are in a GPU's memory: ranks are processes that share the first GPU, and
// where there are several also one on each.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/wire/collectives/gpus.h"
#include "trireme/wire/collectives/device/device_engine.h"

namespace trireme::collectives::test {
namespace {

using namespace std::chrono_literals;
using transport::WorkPtr;
using transport::test::RankProcesses;

std::vector<float> numbers_of(int rank, std::size_t count) {
  std::vector<float> numbers(count);
  for (std::size_t i = 0; i < count; ++i) {
    numbers[i] = static_cast<float>((i * 2654435761U + rank * 40503U) % 100'003U) * 1e-3F;
  }
  return numbers;
}

/// What `numbers_of` all ranks are in THE order.
std::vector<float> combined(int num_ranks, std::size_t count, Reduce by) {
  std::vector<std::vector<float>> given;
  std::vector<const std::byte*> sources;
  for (int rank = 0; rank < num_ranks; ++rank) given.push_back(numbers_of(rank, count));
  for (const auto& part : given) sources.push_back(reinterpret_cast<const std::byte*>(part.data()));
  std::vector<float> result(count);
  const std::array<std::byte*, 1> target = {reinterpret_cast<std::byte*>(result.data())};
  kernels::combine({.dtype = Dtype::kF32, .op = by.op}, sources, target,
                   static_cast<std::int64_t>(count));
  return result;
}

TEST_F(Gpu, RanksThatShareOneHaveTheBitsOfProcessors) {
  for (const int num_ranks : {1, 2, 4}) {
    expect_all_end_well({.num_ranks = num_ranks}, [num_ranks](const Part& part, const Ready&) {
      for (const std::size_t count : {1U, 1000U, 100'000U, 400'003U}) {
        for (const auto op : {kernels::ReduceOp::kSum, kernels::ReduceOp::kAverage}) {
          const auto own = numbers_of(part.group.group_rank(), count);
          const auto data = part.upload(std::as_bytes(std::span(own)));
          const WorkPtr work = part.group.all_reduce({data, Dtype::kF32}, op);
          run_after(part.stream, *work);
          require(part.download<float>(data) == combined(num_ranks, count, op),
                  "wrong bits of " + std::to_string(count));
          wait_for(work);
        }
      }
      wait_for(part.group.barrier());
    });
  }
}

TEST_F(Gpu, OperationsStartAfterTheCallersStream) {
  expect_all_end_well({}, [](const Part& part, const Ready&) {
    const std::vector<std::int32_t> ones(1 << 16, 1);
    const auto data = part.upload(std::as_bytes(std::span(ones)));
    std::vector<WorkPtr> works;
    for (int i = 0; i < 20; ++i) works.push_back(part.group.all_reduce({data, Dtype::kI32}));
    run_after(part.stream, *works.back());
    require(part.download<std::int32_t>(data) == std::vector<std::int32_t>(1 << 16, 1 << 20),
            "wrong sums");
    for (const WorkPtr& work : works) wait_for(work);
  });
}

TEST_F(Gpu, WithoutNcclOtherOperationsAreRefused) {
  expect_all_end_well({}, [](const Part& part, const Ready&) {
    const auto data = part.group.allocate(64);
    try {
      part.group.broadcast(data, 0);
    } catch (const Error& error) {
      return require(error.message().find("share a GPU") != std::string::npos, error.what());
    }
    require(false, "a broadcast of ranks that share a GPU");
  });
}

TEST_F(Gpu, RanksThatCallDifferentThingsFindOut) {
  const auto body = [](const Part& part, const Ready&) {
    const auto data = part.group.allocate(64);
    wait_for(
        part.group.all_reduce({data.first(part.group.group_rank() == 0 ? 64 : 32), Dtype::kF32}));
  };
  RankProcesses processes(2, on_gpus({}, body));
  const transport::test::TestStore server;
  processes.meet_at(server.address());
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_THAT(processes.line_from(rank), testing::HasSubstr("call different operations"));
  }
}

TEST_F(Gpu, ALostRankEndsTheOthersAndTheirKernels) {
  transport::test::expect_rank_2_named(
      on_gpus({.num_ranks = 4},
              [](const Part& part, const Ready& ready) {
                const auto data = part.group.allocate(1 << 20);
                for (int round = 0;; ++round) {
                  wait_for(part.group.all_reduce({data, Dtype::kF32}));
                  if (round == 0) ready();
                }
              }),
      3ms);
}

/// Every operation, of whole numbers, so that any order has the same bits.
void run_operations(const Part& part) {
  const int n = part.group.size();
  const int rank = part.group.group_rank();
  const std::size_t count = static_cast<std::size_t>(n) * 1'000'000;
  const auto numbers = [&](int of) {
    std::vector<std::int32_t> result(count);
    for (std::size_t i = 0; i < count; ++i) result[i] = static_cast<std::int32_t>(i * 7 + of);
    return result;
  };
  std::vector<std::int32_t> sum(count);
  for (int r = 0; r < n; ++r) {
    const auto given = numbers(r);
    for (std::size_t i = 0; i < count; ++i) sum[i] += given[i];
  }
  const auto own = numbers(rank);
  const auto data = part.upload(std::as_bytes(std::span(own)));
  const auto again = [&] { cuda::copy_bytes(data, std::as_bytes(std::span(own)), part.stream); };
  wait_for(part.group.all_reduce({data, Dtype::kI32}));
  require(part.download<std::int32_t>(data) == sum, "all_reduce");
  again();
  wait_for(part.group.reduce({data, Dtype::kI32}, n - 1));
  require(part.download<std::int32_t>(data) == (rank == n - 1 ? sum : own), "reduce");
  again();
  wait_for(part.group.reduce_scatter({data, Dtype::kI32}));
  const Chunk chunk = chunk_of(static_cast<std::int64_t>(count), n, rank);
  const auto reduced = part.download<std::int32_t>(data);
  require(std::equal(reduced.begin() + chunk.begin, reduced.begin() + chunk.end,
                     sum.begin() + chunk.begin),
          "reduce_scatter");
  again();
  wait_for(part.group.broadcast(data, 0));
  require(part.download<std::int32_t>(data) == numbers(0), "broadcast");
  again();
  const auto all = part.group.allocate(data.size() * n);
  wait_for(part.group.all_gather(data, all));
  for (int r = 0; r < n; ++r) {
    require(part.download<std::int32_t>(all.subspan(data.size() * r, data.size())) == numbers(r),
            "all_gather");
  }
  const auto received = part.group.allocate(data.size());
  wait_for(part.group.all_to_all(data, received));
  const std::size_t piece = count / n;
  for (int r = 0; r < n; ++r) {
    const auto got = part.download<std::int32_t>(received.subspan(piece * r * 4, piece * 4));
    require(std::equal(got.begin(), got.end(), numbers(r).begin() + rank * piece), "all_to_all");
  }
  wait_for(part.group.barrier());
}

void require_nccl() {
  if (const auto reason = why_no_nccl()) throw Error(*reason);
}

TEST_F(Gpu, NcclDoesEveryOperationOfOneRank) {
  if (const auto reason = why_no_nccl()) GTEST_SKIP() << reason->message();
  expect_all_end_well({.num_ranks = 1, .order = Order::kAny}, [](const Part& part, const Ready&) {
    require_nccl();
    run_operations(part);
  });
}

TEST_F(Gpu, NcclDoesEveryOperationOfAGpuEach) {
  if (gpu_count < 2) GTEST_SKIP() << "one GPU here; NCCL wants one for each rank";
  if (const auto reason = why_no_nccl()) GTEST_SKIP() << reason->message();
  const int num_ranks = std::min(gpu_count, 8);
  expect_all_end_well({.num_ranks = num_ranks, .num_gpus = num_ranks, .order = Order::kAny},
                      [](const Part& part, const Ready&) { run_operations(part); });
}

}  // namespace
}  // namespace trireme::collectives::test
