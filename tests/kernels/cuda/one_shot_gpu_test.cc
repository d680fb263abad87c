// The kernel by itself: ranks are streams of one process on one GPU. Bit for bit against the loops
// of processors.

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "trireme/base/cuda/check.h"
#include "trireme/base/cuda/memory.h"
#include "trireme/base/cuda/stream.h"
#include "trireme/kernels/cuda/one_shot.h"
#include "trireme/kernels/half.h"

namespace trireme::kernels::cuda {
namespace {

using trireme::cuda::check;
using trireme::cuda::DeviceMemory;
using Bytes = std::vector<std::byte>;

constexpr std::int64_t kMostElements = 300'001;

struct Rank {
  DeviceMemory region{0, sizeof(OneShotRegion)};
  DeviceMemory data{0, static_cast<std::size_t>(kMostElements + 2) * 8};
  std::unique_ptr<Stream> stream = trireme::cuda::make_stream(0);
};

/// Numbers that no sum of a few makes infinite, or any bits of whole numbers.
Bytes random_elements(Dtype dtype, std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> real(-4, 4);
  Bytes bytes(static_cast<std::size_t>(count) * size_bytes(dtype));
  const auto fill = [&](auto make) {
    for (std::int64_t i = 0; i < count; ++i) {
      const auto value = make();
      std::memcpy(bytes.data() + static_cast<std::size_t>(i) * sizeof(value), &value,
                  sizeof(value));
    }
  };
  if (dtype == Dtype::kF64) {
    fill([&] { return double{real(random)} * 1.1; });
  } else if (dtype == Dtype::kF32) {
    fill([&] { return real(random); });
  } else if (dtype == Dtype::kF16) {
    fill([&] { return to_f16(real(random)); });
  } else if (dtype == Dtype::kBf16) {
    fill([&] { return to_bf16(real(random)); });
  } else {
    std::ranges::generate(bytes, [&] { return static_cast<std::byte>(random()); });
  }
  return bytes;
}

class OneShot : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = trireme::cuda::why_no_gpu()) GTEST_SKIP() << reason->message();
  }

  void make_ranks(int count) {
    gpu_ranks.clear();
    for (int i = 0; i < count; ++i) gpu_ranks.push_back(std::make_unique<Rank>());
  }

  OneShotRanks seen_by(int rank) const {
    OneShotRanks ranks{.size = static_cast<int>(gpu_ranks.size()), .rank = rank};
    for (std::size_t i = 0; i < gpu_ranks.size(); ++i) {
      ranks.regions[i] = reinterpret_cast<OneShotRegion*>(gpu_ranks[i]->region.bytes().data());
    }
    return ranks;
  }

  static double scale_of(int rank) { return 0.3 + rank * 0.7; }

  /// offset   elements before the buffers, which so begin at odd places.
  void expect_bits(const ElementReduction& reduction, std::int64_t count, std::int64_t offset) {
    const std::size_t element = size_bytes(reduction.dtype);
    const std::size_t begin = static_cast<std::size_t>(offset) * element;
    std::vector<Bytes> given;
    std::vector<const std::byte*> sources;
    std::vector<double> scales;
    for (std::size_t r = 0; r < gpu_ranks.size(); ++r) {
      given.push_back(random_elements(reduction.dtype, count, static_cast<unsigned>(31 * r + 1)));
      scales.push_back(scale_of(static_cast<int>(r)));
    }
    for (const Bytes& bytes : given) sources.push_back(bytes.data());
    Bytes expected(given[0].size());
    const std::array<std::byte*, 1> target = {expected.data()};
    combine({reduction.dtype, reduction.op, scales}, sources, target, count);
    for (std::size_t r = 0; r < gpu_ranks.size(); ++r) {
      trireme::cuda::copy_bytes(gpu_ranks[r]->data.bytes().subspan(begin, given[r].size()),
                                given[r], *gpu_ranks[r]->stream);
    }
    for (std::size_t r = 0; r < gpu_ranks.size(); ++r) {
      one_shot_all_reduce(seen_by(static_cast<int>(r)), reduction, scales[r],
                          gpu_ranks[r]->data.bytes().data() + begin, count,
                          trireme::cuda::handle_of(*gpu_ranks[r]->stream));
    }
    for (std::size_t r = 0; r < gpu_ranks.size(); ++r) {
      Bytes result(expected.size());
      trireme::cuda::copy_bytes(result, gpu_ranks[r]->data.bytes().subspan(begin, result.size()),
                                *gpu_ranks[r]->stream);
      gpu_ranks[r]->stream->wait();
      EXPECT_TRUE(result == expected)
          << gpu_ranks.size() << " ranks, " << to_text(reduction.op) << " of " << count << " "
          << trireme::to_text(reduction.dtype) << " at " << offset << ": rank " << r;
    }
  }

  std::vector<std::unique_ptr<Rank>> gpu_ranks;
};

TEST_F(OneShot, HasTheBitsOfAProcessorForEveryTypeAndOperation) {
  for (const int num_ranks : {1, 2, 3, 4}) {
    make_ranks(num_ranks);
    for (const Dtype dtype : {Dtype::kF64, Dtype::kF32, Dtype::kF16, Dtype::kBf16, Dtype::kI64,
                              Dtype::kI32, Dtype::kU8, Dtype::kBool}) {
      for (int op = 0; op <= static_cast<int>(kLastReduceOp); ++op) {
        const ElementReduction reduction{.dtype = dtype, .op = static_cast<ReduceOp>(op)};
        if (is_reducible(dtype, reduction.op)) expect_bits(reduction, 1003, 0);
      }
    }
  }
}

TEST_F(OneShot, HasThemForEverySizeAndPlace) {
  for (const int num_ranks : {2, 5, 8}) {
    make_ranks(num_ranks);
    for (const std::int64_t count : {0L, 1L, 3L, 4L, 512L, 4097L, 131'072L, 131'073L, 300'001L}) {
      if (num_ranks == 8 && count > 4097)
        continue;  // kernels that wait for each other must all fit
      for (const std::int64_t offset : {0, 1}) {
        expect_bits({.dtype = Dtype::kF32}, count, offset);
        expect_bits({.dtype = Dtype::kBf16, .op = ReduceOp::kAverage}, count, offset);
      }
    }
  }
}

TEST_F(OneShot, GoesOnWhereItWas) {
  make_ranks(3);
  for (int round = 0; round < 200; ++round) {
    expect_bits({.dtype = Dtype::kF32}, 1 + round * 97, 0);  // other blocks each time
  }
}

TEST_F(OneShot, CanBeCapturedAndReplayed) {
  constexpr int kRanks = 2;
  constexpr int kReplays = 10;
  constexpr std::int64_t kCount = 1000;
  make_ranks(kRanks);
  expect_bits({.dtype = Dtype::kI32}, 8, 0);  // code is loaded now, not in the capture
  const std::vector<std::int32_t> ones(kCount, 1);
  std::vector<cudaGraphExec_t> graphs(kRanks);
  for (int r = 0; r < kRanks; ++r) {
    Rank& rank = *gpu_ranks[r];
    trireme::cuda::copy_bytes(rank.data.bytes().first(kCount * 4), std::as_bytes(std::span(ones)),
                              *rank.stream);
    rank.stream->wait();
    cudaStream_t stream = trireme::cuda::handle_of(*rank.stream);
    cudaGraph_t graph = nullptr;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "begin");
    one_shot_all_reduce(seen_by(r), {.dtype = Dtype::kI32}, 1, rank.data.bytes().data(), kCount,
                        stream);
    check(cudaStreamEndCapture(stream, &graph), "end");
    check(cudaGraphInstantiate(&graphs[r], graph, 0), "instantiate");
    check(cudaGraphDestroy(graph), "destroy");
  }
  for (int i = 0; i < kReplays; ++i) {
    for (int r = 0; r < kRanks; ++r) {
      check(cudaGraphLaunch(graphs[r], trireme::cuda::handle_of(*gpu_ranks[r]->stream)), "launch");
    }
  }
  for (int r = 0; r < kRanks; ++r) {
    std::vector<std::int32_t> result(kCount);
    trireme::cuda::copy_bytes(std::as_writable_bytes(std::span(result)),
                              gpu_ranks[r]->data.bytes().first(kCount * 4), *gpu_ranks[r]->stream);
    gpu_ranks[r]->stream->wait();
    EXPECT_EQ(result, std::vector<std::int32_t>(kCount, 1 << kReplays)) << "rank " << r;
    check(cudaGraphExecDestroy(graphs[r]), "destroy");
  }
}

TEST_F(OneShot, AnAbortEndsAKernelWhoseRanksDoNotCome) {
  make_ranks(2);
  trireme::cuda::HostFlag is_aborted(0);
  OneShotRanks alone = seen_by(0);
  alone.is_aborted = is_aborted.of_device();
  one_shot_all_reduce(alone, {}, 1, gpu_ranks[0]->data.bytes().data(), 100,
                      trireme::cuda::handle_of(*gpu_ranks[0]->stream));
  const auto end = trireme::cuda::make_event(0);
  end->record(*gpu_ranks[0]->stream);
  EXPECT_FALSE(end->is_done());
  is_aborted.set(1);
  end->wait();
}

TEST_F(OneShot, RanksWithOtherCallsAreNoticed) {
  make_ranks(2);
  trireme::cuda::HostFlag differs(0);
  for (int r = 0; r < 2; ++r) {
    OneShotRanks ranks = seen_by(r);
    if (r == 0) ranks.differs = differs.of_device();
    one_shot_all_reduce(ranks, {}, 1, gpu_ranks[r]->data.bytes().data(), 100 + r,
                        trireme::cuda::handle_of(*gpu_ranks[r]->stream));
  }
  for (const auto& rank : gpu_ranks) rank->stream->wait();
  EXPECT_EQ(differs.get(), 2U);
}

TEST_F(OneShot, BadArgumentsAreRefused) {
  make_ranks(1);
  EXPECT_THROW(one_shot_all_reduce({.size = 9}, {}, 1, nullptr, 0, nullptr), Error);
  EXPECT_THROW(one_shot_all_reduce({}, {}, 1, nullptr, 0, nullptr), Error) << "no region";
  EXPECT_THROW(one_shot_all_reduce(seen_by(0), {.dtype = Dtype::kC64}, 1, nullptr, 0, nullptr),
               Error);
}

}  // namespace
}  // namespace trireme::kernels::cuda
