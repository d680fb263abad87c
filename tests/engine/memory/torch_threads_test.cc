#include "trireme/engine/memory/torch_threads.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace trireme::memory {
namespace {

class TorchThreadsTest : public testing::Test {
 protected:
  void SetUp() override { at::set_num_threads(2); }
  void TearDown() override { at::set_num_threads(before_); }

  const int before_ = at::get_num_threads();
};

/// Of the threads that run `n` pieces.
std::size_t count_threads(std::int64_t n) {
  std::vector<std::thread::id> ids(static_cast<std::size_t>(n));
  on_torch_threads(
      n, [&](std::int64_t i) { ids[static_cast<std::size_t>(i)] = std::this_thread::get_id(); });
  return std::set(ids.begin(), ids.end()).size();
}

// All operators ran on one thread, with the same results.
TEST_F(TorchThreadsTest, AreAsManyAsTorchHas) {
  EXPECT_EQ(count_threads(2), 2U);
  EXPECT_EQ(count_threads(9), 2U);
  EXPECT_EQ(count_threads(1), 1U);
  at::set_num_threads(1);
  EXPECT_EQ(count_threads(9), 1U);
}

TEST_F(TorchThreadsTest, RunEveryPieceOnceWithinOthersToo) {
  std::vector<int> runs(20);
  on_torch_threads(4, [&](std::int64_t outer) {
    on_torch_threads(
        5, [&](std::int64_t inner) { ++runs[static_cast<std::size_t>(5 * outer + inner)]; });
  });
  EXPECT_EQ(runs, std::vector<int>(20, 1));
  EXPECT_EQ(count_threads(0), 0U);
}

TEST_F(TorchThreadsTest, GiveAnErrorToTheCaller) {
  const auto fail_at = [](std::int64_t bad) {
    on_torch_threads(4, [&](std::int64_t i) {
      if (i == bad) throw std::runtime_error("piece");
    });
  };
  for (std::int64_t bad = 0; bad < 4; ++bad) EXPECT_THROW(fail_at(bad), std::runtime_error);
}

}  // namespace
}  // namespace trireme::memory
