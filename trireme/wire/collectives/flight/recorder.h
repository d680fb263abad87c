#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trireme/base/log.h"
#include "trireme/wire/collectives/flight/layout.h"
#include "trireme/wire/collectives/request.h"
#include "trireme/wire/system/shared_memory.h"

namespace trireme::collectives {

/// Whose record it is.
struct FlightOwner {
  int world_rank = 0;
  int world_size = 1;
  int group_rank = 0;
  int group_size = 1;
  std::string group;
};

/// For whom an operation waited longest at a stretch.
struct LongestWait {
  int group_rank = -1;  ///< This rank: it waited for nobody. Below 0: not known.
  std::chrono::microseconds time{0};
};

/// Writes what a group does to a ring of its last operations, in memory that other processes can
/// read while this one runs or hangs: /proc/PID/fd/N, a memfd of the name kFlightFile. Always on.
///
/// Steps of an operation whose entry has been taken by a later one are dropped.
///
/// Threads  one at a time; another process may read at any time.
/// Cost     a few stores per step; no allocation, no lock; no clock is read. 84 KB per group.
class FlightRecorder {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Where the system refuses a memfd the record is kept, and only this process can read it.
  explicit FlightRecorder(const FlightOwner& owner);

  void call(std::int64_t sequence, const Request& request, Time time);
  void start(std::int64_t sequence, Time time);

  /// Done, after that wait.
  void end(std::int64_t sequence, Time time, const LongestWait& wait);
  void fail(std::int64_t sequence, Time time);

  /// What others would read, for `parse_flight`. Any thread.
  std::vector<std::byte> copy() const { return internal::copy_flight(memory_); }

 private:
  internal::FlightEntry& entry(std::int64_t sequence) const;
  bool is_current(std::int64_t sequence) const;
  std::int64_t since_start(Time time) const;
  void count(const LongestWait& wait);

  transport::SharedMemory shared_;
  std::vector<std::uint64_t> own_;  ///< In its place.
  std::span<std::byte> memory_;
  internal::FlightLateness* lateness_ = nullptr;  ///< In the memory; one per group rank.
  internal::FlightEntry* entries_ = nullptr;      ///< In the memory.
  Time start_;
  int group_size_;
};

/// Writes the last operations of the record, one line each, at debug level.
void log_last_operations(const FlightRecorder& recorder, const Logger& logger);

/// Name of the memfd.
inline constexpr const char* kFlightFile = "trireme-flight";

}  // namespace trireme::collectives
