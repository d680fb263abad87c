#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>

namespace trireme::data {

/// What one part of reading samples has taken, over all threads.
struct ReadPart {
  std::chrono::nanoseconds time{0};  ///< Without the parts inside it.
  std::int64_t count = 0;
  std::int64_t bytes = 0;  ///< That it took in; 0 where nobody says.
};

/// The parts of reading samples (ReadTimer), added up for one who reads: over the threads that he reads with. Thread-safe.
class ReadParts {
 public:
  using ByName = std::map<std::string, ReadPart, std::less<>>;

  /// Those that have ended since the last call.
  ByName take();

  void add(const char* part, const ReadPart& more);

 private:
  std::mutex mutex_;  ///< Guards parts_.
  ByName parts_;
};

/// While it lives, what this thread reads is added to `parts`; to nothing where that is null.
class CountedReading {
 public:
  /// parts   outlives this.
  explicit CountedReading(ReadParts* parts);
  ~CountedReading();
  CountedReading(const CountedReading&) = delete;
  CountedReading& operator=(const CountedReading&) = delete;

 private:
  ReadParts* before_;
};

/// Adds what a part has taken elsewhere, as on another rank, to what this thread counts. Nothing where nobody counts.
void count_part(const char* part, const ReadPart& more);

/// Times a part of reading a sample ("read", "decode", ..) to the end of its scope, within the thread. Nothing where nobody
/// counts: a look at one variable.
class ReadTimer {
 public:
  explicit ReadTimer(const char* part);
  ~ReadTimer();
  ReadTimer(const ReadTimer&) = delete;
  ReadTimer& operator=(const ReadTimer&) = delete;

  void add_bytes(std::int64_t bytes) { bytes_ += bytes; }

 private:
  using Clock = std::chrono::steady_clock;

  ReadParts* parts_;
  const char* part_;
  std::int64_t bytes_ = 0;
  ReadTimer* around_ = nullptr;
  std::chrono::nanoseconds inside_{0};  ///< Of timers within this one.
  Clock::time_point begin_;
};

}  // namespace trireme::data
