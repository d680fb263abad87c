#include "trireme/plan/schedule/timeline_json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "trireme/base/load_document.h"
#include "trireme/error.h"

// The trace names rows ("threads") by number. Ours are numbered from 1 over (timeline, track), the
// same in all ranks, so that a rank's prediction stands below what it did:
//
//     process "rank 0"   1 measured compute   2 measured wait   3 predicted compute
//     process "rank 1"   1 measured compute   ...
//
// Viewers need the entries of phase M (names), readers of ours the list of rows.

namespace trireme::schedule {
namespace {

/// What viewers show times in; they are written in microseconds all the same.
constexpr std::array<std::string_view, 1> kTimeUnits = {"ms"};

/// A row of the trace: a track of a timeline.
struct Row {
  int timeline = 0;
  std::string track;
  auto operator<=>(const Row&) const = default;
};

bool is_time(double us) { return std::abs(us) <= kMaxTimeUs; }

void check_event(const TimelineEvent& event) {
  if (is_time(event.start_us) && is_time(event.duration_us) && event.duration_us >= 0 &&
      event.rank >= 0 && event.stage >= -1 && event.microbatch >= -1) {
    return;
  }
  throw Error(ErrorKind::kInvalidArgument,
              "timeline: event '" + event.name.substr(0, 80) + "' of rank " +
                  std::to_string(event.rank) +
                  " has a time, rank, stage or microbatch that is none");
}

/// All rows, ascending.
std::vector<Row> all_rows(std::span<const Timeline> timelines) {
  std::set<Row> rows;
  for (std::size_t t = 0; t < timelines.size(); ++t) {
    for (const TimelineEvent& event : timelines[t].events)
      rows.insert({static_cast<int>(t), event.track});
  }
  return {rows.begin(), rows.end()};
}

/// Number of a row in the trace.
int tid_of(const std::vector<Row>& rows, int timeline, const std::string& track) {
  const auto found = std::lower_bound(rows.begin(), rows.end(), Row{timeline, track});
  return static_cast<int>(found - rows.begin()) + 1;
}

std::string row_name(std::span<const Timeline> timelines, const Row& row) {
  return timelines[row.timeline].name + " " + row.track;
}

/// An entry that names a process or, with a row, a thread.
Json name_entry(int rank, int tid, const std::string& name) {
  Json entry = {{"ph", "M"},
                {"pid", rank},
                {"name", tid == 0 ? "process_name" : "thread_name"},
                {"args", {{"name", name}}}};
  if (tid != 0) entry["tid"] = tid;
  return entry;
}

Json event_entry(const TimelineEvent& event, int tid) {
  Json args = Json::object();
  if (event.stage >= 0) args["stage"] = event.stage;
  if (event.microbatch >= 0) args["microbatch"] = event.microbatch;
  return {{"ph", "X"},
          {"pid", event.rank},
          {"tid", tid},
          {"name", event.name},
          {"cat", event.kind},
          {"ts", event.start_us},
          {"dur", event.duration_us},
          {"args", args}};
}

TimelineEvent event_from_entry(JsonObject& entry) {
  const auto microseconds = [&](const char* name) {
    const JsonField field = entry.required(name);
    const double value = field.real();
    if (!is_time(value)) field.fail_expected("a time in microseconds");
    return value;
  };
  TimelineEvent event;
  event.rank = entry.required("pid").index(0);
  event.name = entry.required("name").text();
  event.kind = entry.required("cat").text();
  event.start_us = microseconds("ts");
  event.duration_us = microseconds("dur");
  if (event.duration_us < 0) entry.field().fail("\"dur\" is negative");
  JsonObject args(entry.required("args"));
  if (const auto stage = args.optional("stage")) event.stage = stage->index(0);
  if (const auto microbatch = args.optional("microbatch")) event.microbatch = microbatch->index(0);
  args.finish();
  return event;
}

/// Reads the header: the timelines without their events.
Timeline header_from_json(const JsonField& field) {
  JsonObject object(field);
  Timeline timeline;
  timeline.name = object.required("name").text();
  timeline.step = object.required("step").integer();
  object.finish();
  return timeline;
}

/// Reads the list of rows; a row's timeline must be one of `num_timelines`.
std::vector<Row> rows_from_json(const JsonField& field, int num_timelines) {
  return field.list([&](const JsonField& item) {
    JsonObject object(item);
    Row row;
    row.timeline = object.required("timeline").index(0, num_timelines - 1);
    row.track = object.required("track").text();
    object.finish();
    return row;
  });
}

/// Checks that an entry of phase M says what we would say.
void read_name(JsonObject& entry, const std::vector<Timeline>& timelines,
               const std::vector<Row>& rows) {
  constexpr std::array<std::string_view, 2> kNames = {"process_name", "thread_name"};
  const bool is_thread = entry.required("name").choice(kNames) == 1;
  const int rank = entry.required("pid").index(0);
  std::string expected = "rank " + std::to_string(rank);
  if (is_thread) {
    const int tid = entry.required("tid").index(1, static_cast<int>(rows.size()));
    expected = row_name(timelines, rows[tid - 1]);
  }
  JsonObject args(entry.required("args"));
  const JsonField name = args.required("name");
  if (name.text() != expected) name.fail_expected("'" + expected + "'");
  args.finish();
}

}  // namespace

Json to_json(std::span<const Timeline> timelines) {
  Json json = {{"displayTimeUnit", kTimeUnits[0]},
               {"timelines", Json::array()},
               {"rows", Json::array()},
               {"traceEvents", Json::array()}};
  const std::vector<Row> rows = all_rows(timelines);
  for (const Row& row : rows) {
    json["rows"].push_back({{"timeline", row.timeline}, {"track", row.track}});
  }
  std::map<std::pair<int, int>, std::string> names;  // Of processes and threads.
  Json events = Json::array();
  for (std::size_t t = 0; t < timelines.size(); ++t) {
    json["timelines"].push_back({{"name", timelines[t].name}, {"step", timelines[t].step}});
    for (const TimelineEvent& event : timelines[t].events) {
      check_event(event);
      const int tid = tid_of(rows, static_cast<int>(t), event.track);
      names.try_emplace({event.rank, 0}, "rank " + std::to_string(event.rank));
      names.try_emplace({event.rank, tid}, row_name(timelines, rows[tid - 1]));
      events.push_back(event_entry(event, tid));
    }
  }
  Json& entries = json["traceEvents"];
  for (const auto& [place, name] : names) {
    entries.push_back(name_entry(place.first, place.second, name));
  }
  entries.insert(entries.end(), events.begin(), events.end());
  return json;
}

std::vector<Timeline> timelines_from_json(const Json& body) {
  JsonObject object(JsonField(body, "timeline"));
  object.required("displayTimeUnit").choice(kTimeUnits);
  std::vector<Timeline> timelines = object.required("timelines").list(header_from_json);
  const std::vector<Row> rows =
      rows_from_json(object.required("rows"), static_cast<int>(timelines.size()));
  for (const JsonField& field : object.required("traceEvents").items()) {
    JsonObject entry(field);
    constexpr std::array<std::string_view, 2> kPhases = {"M", "X"};
    if (entry.required("ph").choice(kPhases) == 0) {
      read_name(entry, timelines, rows);
    } else {
      const int tid = entry.required("tid").index(1, static_cast<int>(rows.size()));
      TimelineEvent event = event_from_entry(entry);
      event.track = rows[tid - 1].track;
      timelines[rows[tid - 1].timeline].events.push_back(std::move(event));
    }
    entry.finish();
  }
  object.finish();
  return timelines;
}

std::string save(std::span<const Timeline> timelines, const std::filesystem::path& path) {
  return write_document(path, kTimelineDocument, to_json(timelines));
}

std::vector<Timeline> load_timelines(const std::filesystem::path& path) {
  return load_document(path, kTimelineDocument, timelines_from_json);
}

}  // namespace trireme::schedule
