#include "trireme/plan/timeline/draw.h"

#include <algorithm>
#include <map>
#include <vector>

#include "trireme/error.h"
#include "trireme/plan/timeline/usage.h"

namespace trireme::timeline {
namespace {

/// How long each letter ran in a column, in columns.
using Shares = std::map<char, double>;

char longest(const Shares& shares) {
  double idle = 1;
  for (const auto& [letter, share] : shares) idle -= share;
  char letter = '.';
  double most = std::max(idle, 0.0);
  for (const auto& [candidate, share] : shares) {
    if (share < most || share == 0) continue;
    letter = candidate;
    most = share;
  }
  return letter;
}

/// Adds an event that lasts from `begin` to `end`, in columns.
void add(std::vector<Shares>& row, char letter, double begin, double end) {
  const auto last = static_cast<double>(row.size());
  begin = std::clamp(begin, 0.0, last);
  end = std::clamp(end, 0.0, last);
  for (auto c = static_cast<std::size_t>(begin); c < row.size(); ++c) {
    const auto left = static_cast<double>(c);
    if (left >= end) break;
    row[c][letter] += std::min(end, left + 1) - std::max(begin, left);
  }
}

}  // namespace

std::string draw(const Timeline& timeline, int columns) {
  if (columns < 1 || columns > 1000) {
    throw Error(ErrorKind::kInvalidArgument,
                "a timeline is drawn in 1 to 1000 columns, got " + std::to_string(columns));
  }
  const Extent whole = extent(timeline);
  const double per_us = whole.length_us() > 0 ? columns / whole.length_us() : 0;
  std::map<int, std::vector<Shares>> rows;
  for (const Event& event : timeline.events) {
    std::vector<Shares>& row = rows.try_emplace(event.rank, columns).first->second;
    if (event.track != kComputeTrack) continue;
    const char letter = event.kind.empty() ? '?' : event.kind.front();
    add(row, letter, (event.start_us - whole.begin_us) * per_us,
        (event.end_us() - whole.begin_us) * per_us);
  }
  std::string text;
  const std::size_t width = rows.empty() ? 0 : std::to_string(rows.rbegin()->first).size();
  for (const auto& [rank, row] : rows) {
    std::string number = std::to_string(rank);
    number.insert(0, width - std::min(width, number.size()), ' ');
    text += "rank " + number + " | ";
    for (const Shares& shares : row) text += longest(shares);
    text += "\n";
  }
  return text;
}

}  // namespace trireme::timeline
