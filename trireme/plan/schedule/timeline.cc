#include "trireme/plan/schedule/timeline.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

#include "trireme/error.h"

namespace trireme::schedule {
namespace {

using Interval = std::pair<double, double>;

/// Length of the union of `intervals`.
double covered(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end());
  double length = 0;
  double end = intervals.empty() ? 0 : intervals.front().first;
  for (const auto& [from, to] : intervals) {
    length += std::max(0.0, to - std::max(from, end));
    end = std::max(end, to);
  }
  return length;
}

std::string row(const std::string& rank, double busy_us, double idle_us, double bubble) {
  char text[96];
  std::snprintf(text, sizeof text, "  %4s  %10.3f  %10.3f  %5.1f %%\n", rank.c_str(), busy_us / 1e3,
                idle_us / 1e3, bubble * 100);
  return text;
}

}  // namespace

double RankUsage::bubble() const {
  const double length = busy_us + idle_us;
  return length > 0 ? idle_us / length : 0;
}

TimeSpan time_span(const Timeline& timeline) {
  if (timeline.events.empty()) return {};
  TimeSpan result{timeline.events.front().start_us, timeline.events.front().end_us()};
  for (const TimelineEvent& event : timeline.events) {
    result.begin_us = std::min(result.begin_us, event.start_us);
    result.end_us = std::max(result.end_us, event.end_us());
  }
  return result;
}

std::vector<RankUsage> usage(const Timeline& timeline) {
  std::map<int, std::vector<Interval>> work;
  for (const TimelineEvent& event : timeline.events) {
    std::vector<Interval>& intervals = work[event.rank];
    if (event.track == kComputeTrack) intervals.emplace_back(event.start_us, event.end_us());
  }
  const double length = time_span(timeline).length_us();
  std::vector<RankUsage> result;
  for (auto& [rank, intervals] : work) {
    const double busy = covered(std::move(intervals));
    result.push_back({rank, busy, std::max(0.0, length - busy)});
  }
  return result;
}

std::string show_usage(const Timeline& timeline) {
  std::string text = timeline.name + " step " + std::to_string(timeline.step) + "\n";
  text += "  rank     busy ms     idle ms   bubble\n";
  RankUsage all;
  for (const RankUsage& one : usage(timeline)) {
    text += row(std::to_string(one.rank), one.busy_us, one.idle_us, one.bubble());
    all.busy_us += one.busy_us;
    all.idle_us += one.idle_us;
  }
  return text + row("all", all.busy_us, all.idle_us, all.bubble());
}

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
  const TimeSpan whole = time_span(timeline);
  const double per_us = whole.length_us() > 0 ? columns / whole.length_us() : 0;
  std::map<int, std::vector<Shares>> rows;
  for (const TimelineEvent& event : timeline.events) {
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

}  // namespace trireme::schedule
