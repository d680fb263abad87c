#pragma once

#include <chrono>
#include <cstdint>
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

/// While it lives, the parts (ReadTimer) of all threads of this process are added up. One at a time: kInvalidArgument for another.
class ReadProfile {
 public:
  ReadProfile();
  ~ReadProfile();
  ReadProfile(const ReadProfile&) = delete;
  ReadProfile& operator=(const ReadProfile&) = delete;

  /// By name; those that have ended.
  std::map<std::string, ReadPart> parts() const;

 private:
  friend class ReadTimer;
  void add(const char* part, const ReadPart& more);

  mutable std::mutex mutex_;  ///< Guards parts_.
  std::map<std::string, ReadPart> parts_;
};

/// Times a part of reading a sample ("read", "decode", ..) to the end of its scope, within the thread. Nothing where nobody
/// profiles: a look at one variable.
class ReadTimer {
 public:
  explicit ReadTimer(const char* part);
  ~ReadTimer();
  ReadTimer(const ReadTimer&) = delete;
  ReadTimer& operator=(const ReadTimer&) = delete;

  void add_bytes(std::int64_t bytes) { bytes_ += bytes; }

 private:
  using Clock = std::chrono::steady_clock;

  ReadProfile* profile_;
  const char* part_;
  std::int64_t bytes_ = 0;
  ReadTimer* around_ = nullptr;
  std::chrono::nanoseconds inside_{0};  ///< Of timers within this one.
  Clock::time_point begin_;
};

}  // namespace trireme::data
