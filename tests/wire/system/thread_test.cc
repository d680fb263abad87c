#include "trireme/wire/system/thread.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "trireme/wire/system/signal.h"

namespace trireme::transport {
namespace {

cpu_set_t cores_now() {
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
  LibraryThread("test", [&] { found = cores_now(); }).join();
  return found;
}

// Groups made after the rank was bound summed gradients on the core of its backward.
TEST(LibraryThread, OfABoundThreadRunsAnywhere) {
  std::thread([] {
    const cpu_set_t before = cores_now();
    for (int round = 0; round < 2; ++round) {  // binding again forgets nothing
      bind_to_cores(std::array{first_of(before)});
      const cpu_set_t bound = cores_now();
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
    const cpu_set_t before = cores_now();
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
    bind_to_cores(std::array{first_of(cores_now())});
    EXPECT_EQ(count_cores(), before);
    const Cores own = own_cores();
    EXPECT_EQ(patience_for({&own, 1}, before + 1).spin.count(), 0);
  }).join();
}

/// A process that may run on cores first ... first + count - 1.
Cores cores_from(int first, int count, std::uint32_t quota_percent = 0) {
  Cores cores{.quota_percent = quota_percent};
  for (int core = first; core < first + count; ++core) {
    cores.allowed[core / 64] |= std::uint64_t{1} << (core % 64);
  }
  return cores;
}

bool may_spin(const std::vector<Cores>& ranks, int ranks_of_host) {
  return patience_for(ranks, ranks_of_host).spin.count() > 0;
}

// mpirun and srun bind each rank to one core: by its own mask alone, none ever spun.
TEST(PatienceFor, CountsTheCoresOfAllRanks) {
  EXPECT_TRUE(may_spin({cores_from(0, 1), cores_from(1, 1), cores_from(63, 2)}, 3));
  EXPECT_TRUE(may_spin({cores_from(0, 1), cores_from(1, 1)}, 8));  // the others have their own
  EXPECT_TRUE(may_spin({cores_from(0, 4), cores_from(0, 4)}, 4));
  EXPECT_FALSE(may_spin({cores_from(0, 4), cores_from(0, 4)}, 5));
  EXPECT_FALSE(may_spin({cores_from(0, 1), cores_from(0, 1)}, 2));
  EXPECT_FALSE(may_spin({cores_from(0, 1)}, 2));  // until the others have told
}

// One that spins against its quota is stopped when its neighbours need it.
TEST(PatienceFor, AQuotaBelowACoreForEachForbidsIt) {
  EXPECT_FALSE(may_spin({cores_from(0, 8, 150), cores_from(0, 8)}, 2));
  EXPECT_TRUE(may_spin({cores_from(0, 8, 200), cores_from(0, 8, 400)}, 2));
}

// Two launches on one host bound their ranks to the same cores.
TEST(TakeCores, LeavesCoresThatAreTaken) {
  const int count = count_cores();
  std::mutex mutex;
  std::vector<int> taken;
  std::vector<std::thread> threads;
  std::barrier all(count);
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&] {
      take_cores(0, 1);  // each as the first rank of a launch
      cpu_set_t now;
      sched_getaffinity(0, sizeof now, &now);
      all.arrive_and_wait();  // marks go with their threads
      if (CPU_COUNT(&now) > 1) return;
      const std::lock_guard lock(mutex);
      taken.push_back(first_of(now));
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::ranges::sort(taken);
  EXPECT_EQ(std::ranges::adjacent_find(taken), taken.end());
}

// Messages waited for milliseconds on the core of another rank that was computing.
TEST(TakeCores, LibraryThreadsKeepOffTheCoresOfOtherRanks) {
  const int count = count_cores();
  for (const int num_ranks : {1, count}) {
    std::thread([&] {
      take_cores(0, num_ranks);
      const cpu_set_t own = cores_now();
      if (first_of(own) != allowed_cores().front()) return;  // another launch has that one
      if (CPU_COUNT(&own) > 1 && count > 1) return;          // all are taken by other launches
      const cpu_set_t found = cores_of_library_thread();
      EXPECT_EQ(CPU_COUNT(&found), 1 + count - num_ranks);
      EXPECT_TRUE(CPU_ISSET(first_of(own), &found));
      cpu_set_t inner;  // a LibraryThread that such a thread makes
      LibraryThread("test", [&] { inner = cores_of_library_thread(); }).join();
      EXPECT_TRUE(CPU_EQUAL(&inner, &found));
      EXPECT_EQ(count_cores(), count);
    }).join();
  }
}

/// How many cores the calling thread has.
int num_cores_now() {
  const cpu_set_t now = cores_now();
  return CPU_COUNT(&now);
}

TEST(TakeCores, SeveralForEachRank) {
  const int count = count_cores();
  std::thread([&] {
    EXPECT_TRUE(retake_cores(count).empty());  // it never took any
    EXPECT_EQ(num_cores_now(), count);
    take_cores(0, 1);
    if (num_cores_now() > 1 && count > 1) return;  // all are taken by other launches
    const std::vector<int> own = retake_cores(count);
    EXPECT_TRUE(own.empty() || own == allowed_cores());
    EXPECT_EQ(num_cores_now(), count);
    EXPECT_TRUE(retake_cores(count + 1).empty());  // there are not as many: the system chooses
    EXPECT_EQ(num_cores_now(), count);
    EXPECT_TRUE(retake_cores(1).empty() || num_cores_now() == 1);
  }).join();
}

/// Of the calling thread, in nanoseconds.
std::uint64_t slice_now() {
  struct {
    std::uint32_t size, policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime, deadline, period;
  } attributes{};
  EXPECT_EQ(syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0), 0);
  return attributes.runtime;
}

// A thread with a message to move waited behind one that computes, up to 3 ms.
TEST(LibraryThread, AsksForShortSlices) {
  const std::uint64_t usual = slice_now();
  if (usual == 0) GTEST_SKIP() << "this kernel tells no slices (before Linux 6.12)";
  std::uint64_t found = 0;
  LibraryThread("test", [&] { found = slice_now(); }).join();
  EXPECT_LT(found, usual);
}

}  // namespace
}  // namespace trireme::transport
