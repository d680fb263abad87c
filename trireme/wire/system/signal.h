#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <span>

namespace trireme::transport {

/// How long a waiter looks before it sleeps. Looking keeps a core busy, so it pays only while every
/// rank has one.
struct Patience {
  std::chrono::microseconds spin{20};   ///< Looking again and again.
  std::chrono::microseconds yield{50};  ///< Then, letting others run in between.
};

/// A number in shared memory that only grows and that others wait for: one writer, any number of
/// waiters, in any processes. Zeros are a signal at 0. Wraps around: no waiter may lag by 2^31.
///
/// What was written before `set` is seen after `wait_for` has returned true.
class Signal {
 public:
  std::uint32_t value() const { return value_.load(std::memory_order_acquire); }
  bool has_reached(std::uint32_t wanted) const { return reached(value(), wanted); }

  /// Writer only. Wakes who sleeps.
  void set(std::uint32_t value);

  /// Whether the value was reached before `time` has passed.
  bool wait_for(std::uint32_t wanted, const Patience& patience, std::chrono::microseconds time);

 private:
  static bool reached(std::uint32_t value, std::uint32_t wanted) {
    return static_cast<std::int32_t>(value - wanted) >= 0;
  }
  bool sleep(std::uint32_t wanted, std::chrono::microseconds time);

  std::atomic<std::uint32_t> value_{0};
  std::atomic<std::uint32_t> num_sleepers_{0};
};

static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

/// The cores on which a process may run, for other processes to read. All zeros: unknown.
struct Cores {
  static constexpr int kMost = 1024;

  std::array<std::uint64_t, kMost / 64> allowed{};  ///< A bit for each; those beyond are left out.
  std::uint32_t quota_percent = 0;  ///< Of a core's time, of its control group; 0: no limit.
};

/// Of this process: its affinity before `bind_to_cores`, and the least quota of its control groups.
Cores own_cores();

/// Whether `ranks`, of `ranks_of_host` on this host, may spin: each has a core, and time for it.
/// ranks: those that are known, this one among them.
Patience patience_for(std::span<const Cores> ranks, int ranks_of_host);

}  // namespace trireme::transport
