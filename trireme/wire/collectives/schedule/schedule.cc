#include "trireme/wire/collectives/schedule/schedule.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>

namespace trireme::collectives {

std::string to_text(const Range& range) {
  constexpr std::array<std::string_view, 4> kPlaces = {"data", "input", "scratch", "partial"};
  return std::string(kPlaces.at(static_cast<std::size_t>(range.place))) + "[" +
         std::to_string(range.begin) + ", " + std::to_string(range.end) + ")";
}

std::string to_text(const Step& step) {
  std::string sources;
  for (const Range& source : step.sources) {
    sources += (sources.empty() ? "" : ", ") + to_text(source);
  }
  std::string text;
  switch (step.kind) {
    case StepKind::kSend:
      text = "send " + sources + " to " + std::to_string(step.peer);
      break;
    case StepKind::kRecv:
      text = "recv " + to_text(step.target) + " from " + std::to_string(step.peer);
      break;
    case StepKind::kReduce:
      text = "reduce " + to_text(step.target) + " = " + sources;
      if (step.first_rank > 0) text += " of ranks from " + std::to_string(step.first_rank);
      break;
    case StepKind::kCopy:
      text = "copy " + to_text(step.target) + " = " + sources;
      break;
  }
  for (std::size_t i = 0; i < step.after.size(); ++i) {
    text += (i == 0 ? " after " : ", ") + std::to_string(step.after[i]);
  }
  return text;
}

std::string to_text(const CollectiveSchedule& schedule) {
  std::string text;
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    text += std::to_string(i) + ": " + to_text(schedule.steps[i]) + "\n";
  }
  return text;
}

// For each place the builder keeps which steps have written and read each element since it was last
// written. A step that reads is after the writer; one that writes, after the writer and the
// readers.

Range ScheduleBuilder::scratch(std::int64_t elements) {
  const std::int64_t begin = schedule_.scratch_elements;
  schedule_.scratch_elements += elements;
  return {Place::kScratch, begin, begin + elements};
}

Range ScheduleBuilder::partial(std::int64_t elements) {
  const std::int64_t begin = schedule_.partial_elements;
  schedule_.partial_elements += elements;
  return {Place::kPartial, begin, begin + elements};
}

void ScheduleBuilder::send(int peer, const Range& from) {
  add({.kind = StepKind::kSend, .peer = peer, .sources = {from}});
}

void ScheduleBuilder::send_in_turn(const std::vector<Parcel>& parcels) {
  int last = -1;
  for (const Parcel& parcel : parcels) {
    const int first = next();
    for (const Range& piece : parcel.pieces) send(parcel.peer, piece);
    if (next() == first) continue;
    if (last >= 0) schedule_.steps[first].after.push_back(last);
    last = next() - 1;
  }
}

void ScheduleBuilder::recv(int peer, const Range& to) {
  add({.kind = StepKind::kRecv, .peer = peer, .target = to});
}

void ScheduleBuilder::reduce(const Range& to, std::vector<Range> from, int first_rank) {
  add({.kind = StepKind::kReduce,
       .target = to,
       .sources = std::move(from),
       .first_rank = first_rank});
}

void ScheduleBuilder::copy(const Range& to, const Range& from) {
  add({.kind = StepKind::kCopy, .target = to, .sources = {from}});
}

void ScheduleBuilder::add(Step step) {
  if ((step.kind == StepKind::kSend ? step.sources.front() : step.target).size() == 0) return;
  for (const Range& source : step.sources) read(source, step);
  if (step.kind != StepKind::kSend) write(step.target, step);
  std::ranges::sort(step.after);
  const auto repeated = std::ranges::unique(step.after);
  step.after.erase(repeated.begin(), repeated.end());
  schedule_.steps.push_back(std::move(step));
}

void ScheduleBuilder::split(Cells& cells, std::int64_t at) {
  const auto behind = cells.upper_bound(at);
  if (behind == cells.begin()) return;
  const auto cell = std::prev(behind);
  if (cell->first == at || cell->second.end <= at) return;
  Cell right = cell->second;
  cell->second.end = at;
  cells.emplace(at, std::move(right));
}

void ScheduleBuilder::read(const Range& range, Step& step) {
  Cells& cells = places_[range.place];
  split(cells, range.begin);
  split(cells, range.end);
  std::int64_t at = range.begin;  // elements before are covered by cells
  for (auto cell = cells.lower_bound(range.begin); at < range.end; ++cell) {
    if (cell == cells.end() || cell->first > at) {
      const std::int64_t end = cell == cells.end() ? range.end : std::min(range.end, cell->first);
      cell = cells.emplace(at, Cell{end, -1, {}}).first;
    }
    if (cell->second.writer >= 0) step.after.push_back(cell->second.writer);
    cell->second.readers.push_back(next());
    at = cell->second.end;
  }
}

void ScheduleBuilder::write(const Range& range, Step& step) {
  Cells& cells = places_[range.place];
  split(cells, range.begin);
  split(cells, range.end);
  const auto first = cells.lower_bound(range.begin);
  const auto last = cells.lower_bound(range.end);
  for (auto cell = first; cell != last; ++cell) {
    if (cell->second.writer >= 0) step.after.push_back(cell->second.writer);
    for (const int reader : cell->second.readers) {
      if (reader != next()) step.after.push_back(reader);
    }
  }
  cells.erase(first, last);
  cells.emplace(range.begin, Cell{range.end, next(), {}});
}

Range part_of(const Range& range, std::int64_t begin, std::int64_t end) {
  return {range.place, range.begin + begin, range.begin + end};
}

std::vector<Range> segments_of(const Range& range, std::int64_t segment) {
  std::vector<Range> result;
  for (std::int64_t at = 0; at < range.size(); at += segment) {
    result.push_back(part_of(range, at, std::min(range.size(), at + segment)));
  }
  return result;
}

}  // namespace trireme::collectives
