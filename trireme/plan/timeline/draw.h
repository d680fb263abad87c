#pragma once

#include <string>

#include "trireme/plan/timeline/timeline.h"

namespace trireme::timeline {

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

}  // namespace trireme::timeline
