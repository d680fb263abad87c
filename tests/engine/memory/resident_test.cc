#include "trireme/engine/memory/resident.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

namespace trireme::memory {
namespace {

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
