#include "trireme/engine/memory/process_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <torch/torch.h>
#include <unistd.h>

#include <thread>
#include <vector>

namespace trireme::memory {
namespace {

class BlockAllocatorTest : public testing::Test {
 protected:
  void SetUp() override {
    install_block_allocator();
    release_cached_blocks();
    before_ = memory_use().live_bytes;
  }
  std::int64_t live() const { return memory_use().live_bytes - before_; }

  std::int64_t before_ = 0;
};

TEST_F(BlockAllocatorTest, CountsWhatTensorsHoldAndComesBackToZero) {
  {
    const auto a = torch::zeros({1000}), b = torch::zeros({3000000});
    EXPECT_EQ(live(), 4000 + 12000000);
    const auto view = b.slice(0, 0, 10);
    EXPECT_EQ(live(), 4000 + 12000000);
  }
  EXPECT_EQ(live(), 0);
}

TEST_F(BlockAllocatorTest, KeepsLargeBlocksAndUsesThemAgain) {
  void* first = nullptr;
  {
    const auto large = torch::empty({40 << 20}, torch::kByte);
    first = large.data_ptr();
  }
  EXPECT_GE(memory_use().cached_bytes, 40 << 20);
  const auto again = torch::empty({40 << 20}, torch::kByte);
  EXPECT_EQ(again.data_ptr(), first);
  EXPECT_EQ(memory_use().cached_bytes, 0);
}

/// Pages that the system gave this process so far.
std::int64_t new_pages() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

TEST_F(BlockAllocatorTest, RoundsAfterTheFirstTakeNoNewPages) {
  const auto round = [] {
    std::vector<torch::Tensor> activations;  // 11 MiB, as of a microbatch
    for (int i = 0; i < 40; ++i) activations.push_back(torch::ones({10000 + 3000 * i}));
  };
  round();
  const std::int64_t before = new_pages();
  for (int i = 0; i < 20; ++i) round();
  EXPECT_LT(new_pages() - before, 300);  // those of one round are 2,700
}

TEST_F(BlockAllocatorTest, GivesKeptBlocksBackWhenAsked) {
  {
    const auto large = torch::empty({4 << 20}, torch::kByte);
  }
  EXPECT_GT(memory_use().cached_bytes, 0);
  release_cached_blocks();
  EXPECT_EQ(memory_use().cached_bytes, 0);
}

TEST_F(BlockAllocatorTest, PeakIsTheMostThatWasLiveAtOnce) {
  reset_peak();
  const std::int64_t start = memory_use().peak_bytes;
  {
    const auto a = torch::empty({100000}, torch::kByte);
  }
  {
    const auto b = torch::empty({70000}, torch::kByte);
  }
  EXPECT_EQ(memory_use().peak_bytes - start, 100000);
}

TEST_F(BlockAllocatorTest, MemoryIsAlignedTo64Bytes) {
  for (std::int64_t size : {1, 63, 64, 65, 1000, (1 << 20) + 1, 5000001}) {
    const auto tensor = torch::empty({size}, torch::kByte);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.data_ptr()) % 64, 0U) << size;
  }
}

TEST_F(BlockAllocatorTest, EmptyTensorsAreFine) {
  const auto empty = torch::empty({0});
  EXPECT_EQ(empty.numel(), 0);
  EXPECT_EQ(live(), 0);
}

TEST_F(BlockAllocatorTest, OneDnnWorksOnIt) {
  // It asks for raw memory and aborts where a block's context is not its address.
  torch::nn::Conv2d convolution(torch::nn::Conv2dOptions(8, 16, 3));
  const auto y = convolution(torch::randn({4, 8, 20, 20}));
  y.sum().backward();
  torch::nn::LSTM lstm(torch::nn::LSTMOptions(8, 8));
  std::get<0>(lstm(torch::randn({5, 2, 8}))).sum().backward();
  EXPECT_TRUE(convolution->weight.grad().defined());
}

TEST_F(BlockAllocatorTest, ThreadsMayAllocateAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 200; ++i) torch::empty({(1 << 20) + i}, torch::kByte).fill_(1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(live(), 0);
}

TEST(Resident, GrowsWithWhatIsTouched) {
  const std::int64_t before = resident_peak_bytes();
  constexpr std::int64_t kBytes = std::int64_t{64} << 20;
  // More than the process may have had and given back.
  const std::vector<char> touched(static_cast<std::size_t>(before + kBytes), 1);
  EXPECT_GE(resident_peak_bytes(), before + kBytes);
  EXPECT_EQ(touched.back(), 1);
}

TEST(Available, IsWithinTheMachine) {
  EXPECT_GT(available_bytes(), 0);
  EXPECT_LT(available_bytes(), sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
}

}  // namespace

}  // namespace trireme::memory
