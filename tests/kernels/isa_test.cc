#include "trireme/kernels/isa.h"

#include <gtest/gtest.h>

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
  const IsaLimit limit(Isa::kAmx);
  EXPECT_EQ(isa(), best);
}

}  // namespace
}  // namespace trireme::kernels
