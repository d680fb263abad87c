#pragma once

#include <string>
#include <vector>

#include "trireme/plan/timeline/timeline.h"

namespace trireme::timeline {

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
struct Extent {
  double begin_us = 0;
  double end_us = 0;
  double length_us() const { return end_us - begin_us; }
};

/// Zero of an empty timeline.
Extent extent(const Timeline& timeline);

/// Usage of every rank that has an event, by rank. Times count from the first start of any rank to
/// the last end.
std::vector<RankUsage> usage(const Timeline& timeline);

/// The usage as a table for people: busy, idle, bubble per rank and over all.
std::string show_usage(const Timeline& timeline);

}  // namespace trireme::timeline
