#include "trireme/wire/transport/thread.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

#include "trireme/wire/transport/shm/signal.h"

namespace trireme::transport {
namespace {

cpu_set_t own_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  EXPECT_EQ(sched_getaffinity(0, sizeof cores, &cores), 0);
  return cores;
}

int first_of(const cpu_set_t& cores) {
  int core = 0;
  while (CPU_ISSET(core, &cores) == 0) ++core;
  return core;
}

/// Where a LibraryThread that the calling thread makes may run.
cpu_set_t cores_of_library_thread() {
  cpu_set_t found;
  LibraryThread("test", [&] { found = own_cores(); }).join();
  return found;
}

// Groups made after the rank was bound summed gradients on the core of its backward.
TEST(LibraryThread, OfABoundThreadRunsAnywhere) {
  std::thread([] {
    const cpu_set_t before = own_cores();
    for (int round = 0; round < 2; ++round) {  // binding again forgets nothing
      bind_to_core(first_of(before));
      const cpu_set_t bound = own_cores();
      EXPECT_EQ(CPU_COUNT(&bound), 1);
      EXPECT_TRUE(CPU_ISSET(first_of(before), &bound));
      const cpu_set_t found = cores_of_library_thread();
      EXPECT_TRUE(CPU_EQUAL(&found, &before));
    }
  }).join();
}

// Whoever restricted a thread by other means meant the threads that it makes too.
TEST(LibraryThread, OtherwiseRunsWhereItsMakerMay) {
  std::thread([] {
    const cpu_set_t before = own_cores();
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(first_of(before), &own);
    ASSERT_EQ(sched_setaffinity(0, sizeof own, &own), 0);
    const cpu_set_t found = cores_of_library_thread();
    EXPECT_TRUE(CPU_EQUAL(&found, &own));
  }).join();
}

// A rank on a core of its own took itself for one that has to share it, and did not spin.
TEST(CountCores, AreThoseOfTheProcessAlsoWhereTheThreadIsBound) {
  std::thread([] {
    const int before = count_cores();
    bind_to_core(first_of(own_cores()));
    EXPECT_EQ(count_cores(), before);
    EXPECT_EQ(Patience::for_ranks(before).spin, Patience().spin);
    EXPECT_EQ(Patience::for_ranks(before + 1).spin.count(), 0);
  }).join();
}

}  // namespace
}  // namespace trireme::transport
