#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::timeline {

/// The track on which a rank works; what is on other tracks (waiting, transfers) is not its work.
inline constexpr std::string_view kComputeTrack = "compute";

/// Largest time, start or duration, of an event: 30 years.
inline constexpr double kMaxTimeUs = 1e15;

/// Something that a rank does, did or would do.
struct Event {
  int rank = 0;
  std::string track = std::string(kComputeTrack);
  std::string kind;     ///< Short class: `F`, `B`, `I`, `W`, `recv`, `reduce`, ...
  std::string name;     ///< What is shown: `2F0`, `recv v17 m3 0>1`.
  int stage = -1;       ///< -1 where it is of none.
  int microbatch = -1;  ///< Of the replica; -1 where it is of none.
  double start_us = 0;  ///< From the start of the step.
  double duration_us = 0;

  double end_us() const { return start_us + duration_us; }
  bool operator==(const Event&) const = default;
};

/// What all ranks do in a step: what really ran, or what a simulator expects. Plain data.
struct Timeline {
  std::string name;  ///< `measured` or `predicted`.
  std::int64_t step = 0;
  std::vector<Event> events;  ///< In any order.
  bool operator==(const Timeline&) const = default;
};

}  // namespace trireme::timeline
