#include "trireme/kernels/isa.h"

#include <gtest/gtest.h>

#if defined(__linux__) && defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace trireme::kernels {
namespace {

TEST(IsaTest, ALimitHoldsWhileItLives) {
  const Isa best = isa();
  {
    const IsaLimit limit(Isa::kPortable);
    EXPECT_EQ(isa(), Isa::kPortable);
    EXPECT_FALSE(has_avx2());
  }
  EXPECT_EQ(isa(), best);
}

TEST(IsaTest, ALimitAddsNothing) {
  const Isa best = isa();
  const IsaLimit limit(Isa::kAvx512);
  EXPECT_EQ(isa(), best);
}

#if defined(__linux__) && defined(__x86_64__)
/// A process that may use them has 8 KiB more of state saved for each of its threads' signals.
TEST(IsaTest, AsksForNoTilesThatNoKernelUses) {
  constexpr int kGetPermission = 0x1022;
  constexpr std::uint64_t kTileData = std::uint64_t{1} << 18;
  std::uint64_t permitted = 0;
  isa();
  if (syscall(SYS_arch_prctl, kGetPermission, &permitted) != 0) {
    GTEST_SKIP() << "this kernel has no permissions for parts of a processor's state";
  }
  EXPECT_EQ(permitted & kTileData, 0U);
}
#endif

}  // namespace
}  // namespace trireme::kernels
