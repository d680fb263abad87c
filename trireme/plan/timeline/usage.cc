#include "trireme/plan/timeline/usage.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

namespace trireme::timeline {
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

Extent extent(const Timeline& timeline) {
  if (timeline.events.empty()) return {};
  Extent result{timeline.events.front().start_us, timeline.events.front().end_us()};
  for (const Event& event : timeline.events) {
    result.begin_us = std::min(result.begin_us, event.start_us);
    result.end_us = std::max(result.end_us, event.end_us());
  }
  return result;
}

std::vector<RankUsage> usage(const Timeline& timeline) {
  std::map<int, std::vector<Interval>> work;
  for (const Event& event : timeline.events) {
    std::vector<Interval>& intervals = work[event.rank];
    if (event.track == kComputeTrack) intervals.emplace_back(event.start_us, event.end_us());
  }
  const double length = extent(timeline).length_us();
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

}  // namespace trireme::timeline
