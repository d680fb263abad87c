#include "trireme/wire/system/shared_memory.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <new>
#include <optional>
#include <thread>
#include <vector>

#include "tests/base/error_of.h"
#include "trireme/error.h"
#include "trireme/wire/system/signal.h"

namespace trireme::transport {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using trireme::test::error_of;

constexpr std::size_t kBytes = 3 * 4096;

TEST(SharedMemory, IsSeenThroughAnotherMapping) {
  const SharedMemory one = SharedMemory::create("test", kBytes);
  const SharedMemory other = SharedMemory::open(Descriptor(::dup(one.file().number())), kBytes);
  EXPECT_NE(one.bytes().data(), other.bytes().data());
  EXPECT_EQ(other.bytes()[5], std::byte{0});
  one.bytes()[5] = std::byte{7};
  EXPECT_EQ(other.bytes()[5], std::byte{7});
}

TEST(SharedMemory, OutlivesItsMakersMapping) {
  SharedMemory one = SharedMemory::create("test", kBytes);
  const SharedMemory other = SharedMemory::open(Descriptor(::dup(one.file().number())), kBytes);
  one.bytes().back() = std::byte{3};
  one = SharedMemory();
  EXPECT_EQ(other.bytes().back(), std::byte{3});
}

// Its maker provided all of it, on its own NUMA node and against its own limit.
TEST(SharedMemory, HasThePagesThatWereProvided) {
  const SharedMemory memory = SharedMemory::create_empty("test", kBytes);
  const auto taken = [&memory] {
    struct stat status{};
    EXPECT_EQ(::fstat(memory.file().number(), &status), 0);
    return status.st_blocks * 512;
  };
  EXPECT_EQ(taken(), 0);
  memory.provide(4096, 4096);
  EXPECT_EQ(taken(), 4096);
  memory.bytes()[4096] = std::byte{7};
  memory.provide(4096, 4096);
  EXPECT_EQ(memory.bytes()[4096], std::byte{7});
  EXPECT_EQ(taken(), 4096);
}

TEST(SharedMemory, OfAnotherSizeOrThatMayShrinkIsRefused) {
  const SharedMemory whole = SharedMemory::create("test", kBytes);
  const auto opened = [](int file, std::size_t bytes) {
    return error_of([&] { SharedMemory::open(Descriptor(::dup(file)), bytes); });
  };
  EXPECT_EQ(opened(whole.file().number(), kBytes + 4096).kind(), ErrorKind::kCorruptData);
  const Descriptor loose(::memfd_create("loose", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(loose.number(), kBytes), 0);
  EXPECT_THAT(opened(loose.number(), kBytes).message(), HasSubstr("that are sealed"));
  const Descriptor null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_EQ(opened(null.number(), kBytes).kind(), ErrorKind::kCorruptData);
}

TEST(SharedMemory, SaysThatThereIsTooLittle) {
  rlimit old_limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{.rlim_cur = 4096, .rlim_max = old_limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const Error error = error_of([] { SharedMemory::create("test", kBytes); });
  ::setrlimit(RLIMIT_FSIZE, &old_limit);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(error.kind(), ErrorKind::kResourceExhausted);
  EXPECT_THAT(error.message(), HasSubstr("cannot make 12288 bytes of shared memory: "));
}

// As under a profiler. Many kernels undo the system call that a signal interrupts; Linux 6.18 goes
// on with it.
TEST(SharedMemory, IsMadeUnderATimersSignals) {
  struct sigaction old_action{}, action{};
  action.sa_handler = [](int) {};
  ASSERT_EQ(::sigaction(SIGALRM, &action, &old_action), 0);
  const itimerval every_2_ms{.it_interval = {0, 2'000}, .it_value = {0, 2'000}};
  ASSERT_EQ(::setitimer(ITIMER_REAL, &every_2_ms, nullptr), 0);
  std::optional<Error> error;
  try {
    const SharedMemory memory = SharedMemory::create("test", std::size_t{256} << 20);
    EXPECT_EQ(memory.bytes().back(), std::byte{0});
  } catch (const Error& thrown) {
    error = thrown;
  }
  const itimerval none{};
  ::setitimer(ITIMER_REAL, &none, nullptr);
  ::sigaction(SIGALRM, &old_action, nullptr);
  EXPECT_FALSE(error.has_value()) << error->what();
}

TEST(SharedMemory, HasNoName) {
  const SharedMemory memory = SharedMemory::create("trireme-no-name", kBytes);
  const std::filesystem::path file =
      std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(memory.file().number()));
  EXPECT_THAT(file.string(), HasSubstr("memfd:trireme-no-name (deleted)"));
}

/// A signal in memory of several processes.
class Signals : public testing::Test {
 protected:
  SharedMemory memory = SharedMemory::create("signal", 4096);
  Signal& signal = *new (memory.bytes().data()) Signal;
  const Patience sleeping{.spin = 0us, .yield = 0us};
};

TEST_F(Signals, AreReachedOrNot) {
  EXPECT_TRUE(signal.has_reached(0));
  EXPECT_FALSE(signal.has_reached(1));
  EXPECT_FALSE(signal.wait_for(1, {}, 1ms));
  EXPECT_FALSE(signal.wait_for(1, sleeping, 1ms));
  signal.set(2);
  EXPECT_TRUE(signal.wait_for(1, {}, 0us));
  EXPECT_TRUE(signal.wait_for(2, sleeping, 0us));
}

TEST_F(Signals, WrapAround) {
  signal.set(0xFFFF'FFFF);
  EXPECT_TRUE(signal.has_reached(0xFFFF'FFFF));
  EXPECT_FALSE(signal.has_reached(1));
  signal.set(2);
  EXPECT_TRUE(signal.has_reached(0xFFFF'FFFF));
}

// No wake-up is lost: a single one would else last until a waiter looks by itself, at the end of
// its time.
TEST_F(Signals, WakeAnotherProcess) {
  Signal& answer = *new (memory.bytes().data() + 128) Signal;
  constexpr std::uint32_t kSteps = 5000;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    for (std::uint32_t step = 1; step <= kSteps; ++step) {
      if (!signal.wait_for(step, sleeping, 20s)) ::_exit(1);
      answer.set(step);
    }
    ::_exit(0);
  }
  const auto start = std::chrono::steady_clock::now();
  for (std::uint32_t step = 1; step <= kSteps; ++step) {
    signal.set(step);
    ASSERT_TRUE(answer.wait_for(step, step % 2 == 0 ? sleeping : Patience(), 20s)) << step;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(Signals, WaitersSleep) {
  timespec before{}, after{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
  EXPECT_FALSE(signal.wait_for(1, Patience(), 200ms));
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
  const double used = static_cast<double>(after.tv_sec - before.tv_sec) +
                      1e-9 * static_cast<double>(after.tv_nsec - before.tv_nsec);
  EXPECT_LT(used, 0.002) << "of 0.2 s";
}

}  // namespace
}  // namespace trireme::transport
