#include "trireme/base/kernel_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

#include "trireme/error.h"

namespace trireme {
namespace {

using internal::usable_bytes;

TEST(KernelFiles, FieldsOfKernelFiles) {
  constexpr const char* kText = "processor\t: 0\nmodel name\t: A Processor @ 2: 1\nflags :\n";
  EXPECT_EQ(field_of(kText, "model name"), "A Processor @ 2: 1");
  EXPECT_EQ(field_of(kText, "model"), "");
  EXPECT_EQ(field_of(kText, "flags"), "");
  EXPECT_EQ(field_of("", "flags"), "");
}

TEST(KernelFiles, TheLowestLimitOfMemoryHolds) {
  constexpr const char* kMeminfo = "MemTotal:       2048 kB\nMemFree:  7 kB\n";
  const std::int64_t total = 2 << 20;
  EXPECT_EQ(usable_bytes(kMeminfo, {}), total);
  EXPECT_EQ(usable_bytes(kMeminfo, std::array<std::string, 2>{"", "max\n"}), total);
  EXPECT_EQ(usable_bytes(kMeminfo, std::array<std::string, 2>{"9000\n", "max\n"}), 9000);
  EXPECT_EQ(usable_bytes(kMeminfo, std::array<std::string, 1>{"9223372036854771712\n"}), total);
  EXPECT_THROW(usable_bytes("MemFree: 7 kB\n", {}), Error);
}

TEST(KernelFiles, ThisProcessHasSomeMemory) {
  const std::int64_t all = std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  EXPECT_GT(usable_memory_bytes(), 0);
  EXPECT_LE(usable_memory_bytes(), all + all / 8);  // which lacks what the kernel keeps
  EXPECT_EQ(kernel_file("/proc/no such file"), "");
}

}  // namespace
}  // namespace trireme
