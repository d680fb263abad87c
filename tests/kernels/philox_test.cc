#include "trireme/kernels/philox.h"

#include <gtest/gtest.h>

#include <vector>

#include "trireme/base/random.h"
#include "trireme/kernels/isa.h"

namespace trireme::kernels {
namespace {

TEST(PhiloxTest, IsThatOfBaseOnAllInstructionSets) {
  const std::array<std::uint32_t, 3> row = {7, 0xFFFFFFFF, 0x80000001};
  const std::array<std::uint32_t, 2> key = {0xDEADBEEF, 0xFFFFFFFE};
  for (const Isa limit : {Isa::kPortable, Isa::kAvx2, Isa::kAvx512}) {
    const IsaLimit limited(limit);
    for (const std::int64_t n : {0, 16, 48}) {
      std::vector<std::uint32_t> words(4 * n);
      philox_row(row, key, n, words.data());
      for (std::int64_t i = 0; i < n; ++i) {
        const auto expected = philox({static_cast<std::uint32_t>(i), row[0], row[1], row[2]}, key);
        for (int w = 0; w < 4; ++w) EXPECT_EQ(words[w * n + i], expected[w]) << n << " " << i;
      }
    }
    std::vector<std::uint32_t> words(4 * 32);
    philox_row(row, key, 32, words.data(), {.first = 0xFFFFFFF0, .step = 3});
    for (std::uint32_t i = 0; i < 32; ++i) {
      const auto expected = philox({0xFFFFFFF0 + 3 * i, row[0], row[1], row[2]}, key);
      for (std::size_t w = 0; w < 4; ++w) EXPECT_EQ(words[w * 32 + i], expected[w]) << i;
    }
  }
}

}  // namespace
}  // namespace trireme::kernels
