#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::schedule {

/// The track on which a rank works; what is on other tracks (waiting, transfers) is not its work.
inline constexpr std::string_view kComputeTrack = "compute";

/// Largest time, start or duration, of an event: 30 years.
inline constexpr double kMaxTimeUs = 1e15;

/// Something that a rank does, did or would do.
struct TimelineEvent {
  int rank = 0;
  std::string track = std::string(kComputeTrack);
  std::string kind;     ///< Short class: `F`, `B`, `I`, `W`, `recv`, `reduce`, ...
  std::string name;     ///< What is shown: `2F0`, `recv v17 m3 0>1`.
  int stage = -1;       ///< -1 where it is of none.
  int microbatch = -1;  ///< Of the replica; -1 where it is of none.
  double start_us = 0;  ///< From the start of the step.
  double duration_us = 0;

  double end_us() const { return start_us + duration_us; }
  bool operator==(const TimelineEvent&) const = default;
};

/// What all ranks do in a step: what really ran, or what a simulator expects. Plain data.
struct Timeline {
  std::string name;  ///< `measured` or `predicted`.
  std::int64_t step = 0;
  std::vector<TimelineEvent> events;  ///< In any order.
  bool operator==(const Timeline&) const = default;
};

/// How a rank spent a step.
struct RankUsage {
  int rank = 0;
  double busy_us = 0;  ///< Covered by events of its compute track, overlaps counted once.
  double idle_us = 0;  ///< The rest of the step.

  /// Share of the step that is bubble, 0 to 1; 0 of an empty step.
  double bubble() const;
  bool operator==(const RankUsage&) const = default;
};

/// First start and last end of all events of a timeline.
struct TimeSpan {
  double begin_us = 0;
  double end_us = 0;
  double length_us() const { return end_us - begin_us; }
};

/// Zero of an empty timeline.
TimeSpan time_span(const Timeline& timeline);

/// Usage of every rank that has an event, by rank. Times count from the first start of any rank to
/// the last end.
std::vector<RankUsage> usage(const Timeline& timeline);

/// The usage as a table for people: busy, idle, bubble per rank and over all.
std::string show_usage(const Timeline& timeline);

/// The compute tracks for a terminal, one row per rank, the whole step in `columns` characters:
///
///     rank 0 | FFFF....BBBB..BBBB
///     rank 1 | ..FFBBBBFFBBBB....
///
/// A column shows the first letter of the kind of what ran longest in its time, `.` where nothing
/// ran for longer than that.
///
/// timeline  times of at most kMaxTimeUs.
/// columns   1 to 1000, else kInvalidArgument.
/// Cost      events x the columns that they touch.
std::string draw(const Timeline& timeline, int columns);

}  // namespace trireme::schedule
