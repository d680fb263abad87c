#include "trireme/wire/system/signal.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <climits>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>

#include "trireme/wire/system/thread.h"

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

namespace {

/// In percent of a core's time; 0 where the group has no limit or tells none.
std::uint32_t quota_of_group(const std::filesystem::path& group) {
  std::string quota;
  double period = 0;
  std::ifstream(group / "cpu.max") >> quota >> period;
  if (quota.empty() || quota == "max" || period <= 0) return 0;
  return static_cast<std::uint32_t>(std::max(1.0, 100 * std::stod(quota) / period));
}

/// The least of this process's group and those above it. Inside a container it sees its own as the
/// root.
std::uint32_t least_quota() {
  const std::filesystem::path root = "/sys/fs/cgroup";
  std::string line, path = "/";
  for (std::ifstream file("/proc/self/cgroup"); std::getline(file, line);) {
    if (line.starts_with("0::/")) path = line.substr(3);
  }
  std::uint32_t least = 0;
  for (std::filesystem::path group = path.substr(1); true; group = group.parent_path()) {
    const std::uint32_t quota = quota_of_group(root / group);
    if (quota != 0) least = least == 0 ? quota : std::min(least, quota);
    if (group.empty()) return least;
  }
}

int count(const Cores& cores) {
  int sum = 0;
  for (const std::uint64_t bits : cores.allowed) sum += std::popcount(bits);
  return sum;
}

}  // namespace

Cores own_cores() {
  Cores cores{.quota_percent = least_quota()};
  for (const int core : allowed_cores()) {
    if (core < Cores::kMost) cores.allowed[core / 64] |= std::uint64_t{1} << (core % 64);
  }
  return cores;
}

Patience patience_for(std::span<const Cores> ranks, int ranks_of_host) {
  Cores all;
  int sum = 0;
  std::uint32_t quota = 0;
  for (const Cores& cores : ranks) {
    sum += count(cores);
    for (std::size_t i = 0; i < all.allowed.size(); ++i) all.allowed[i] |= cores.allowed[i];
    const std::uint32_t own = cores.quota_percent;
    if (own != 0) quota = quota == 0 ? own : std::min(quota, own);
  }
  // Cores of their own, which no other rank of the host has either, or enough for everybody.
  const bool is_apart = sum == count(all) && std::ssize(ranks) > 1;
  const bool has_cores = is_apart || count(all) >= ranks_of_host;
  const bool has_time = quota == 0 || quota >= 100 * static_cast<std::uint32_t>(ranks_of_host);
  if (has_cores && has_time) return {};
  return {.spin = std::chrono::microseconds(0)};
}

}  // namespace trireme::transport
