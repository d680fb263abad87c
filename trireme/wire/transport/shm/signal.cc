#include "trireme/wire/transport/shm/signal.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace trireme::transport {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

std::uint32_t* word_of(std::atomic<std::uint32_t>& value) {
  return reinterpret_cast<std::uint32_t*>(&value);
}

/// Not FUTEX_PRIVATE: the waiters are other processes.
void futex_wait(std::atomic<std::uint32_t>& value, std::uint32_t seen, microseconds time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  const timespec left{.tv_sec = static_cast<std::time_t>(seconds.count()),
                      .tv_nsec = static_cast<long>((time - seconds).count() * 1000)};
  syscall(SYS_futex, word_of(value), FUTEX_WAIT, seen, &left, nullptr, 0);
}

void futex_wake(std::atomic<std::uint32_t>& value) {
  syscall(SYS_futex, word_of(value), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

/// Calls `look` until it is true or `time` has passed, with `pause` in between.
template <typename Look, typename Pause>
bool look_for(microseconds time, Look look, Pause pause) {
  if (look()) return true;
  if (time.count() <= 0) return false;
  const auto end = Clock::now() + time;
  do {
    for (int i = 0; i < 32; ++i) {  // the clock costs as much as many looks
      if (look()) return true;
      pause();
    }
  } while (Clock::now() < end);
  return look();
}

}  // namespace

void Signal::set(std::uint32_t value) {
  // Sequentially consistent with `sleep`: either it sees the value, or this sees the sleeper.
  value_.store(value, std::memory_order_seq_cst);
  if (num_sleepers_.load(std::memory_order_seq_cst) != 0) futex_wake(value_);
}

bool Signal::wait_for(std::uint32_t wanted, const Patience& patience, microseconds time) {
  const auto look = [&] { return has_reached(wanted); };
  if (look_for(patience.spin, look, relax)) return true;
  const auto yield_until = Clock::now() + patience.yield;
  while (Clock::now() < yield_until) {
    if (look()) return true;
    sched_yield();
  }
  return sleep(wanted, time);
}

bool Signal::sleep(std::uint32_t wanted, microseconds time) {
  const auto end = Clock::now() + time;
  num_sleepers_.fetch_add(1, std::memory_order_seq_cst);
  bool is_there = false;
  while (true) {
    const std::uint32_t seen = value_.load(std::memory_order_seq_cst);
    is_there = reached(seen, wanted);
    const auto left = std::chrono::ceil<microseconds>(end - Clock::now());
    if (is_there || left.count() <= 0) break;
    futex_wait(value_, seen, left);
  }
  num_sleepers_.fetch_sub(1, std::memory_order_relaxed);
  return is_there;
}

}  // namespace trireme::transport
