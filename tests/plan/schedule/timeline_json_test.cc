#include "trireme/plan/schedule/timeline_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "tests/base/document_form.h"
#include "trireme/error.h"

namespace trireme::schedule {
namespace {

using ::testing::HasSubstr;

std::vector<Timeline> both() {
  return {{"measured",
           12,
           {{.rank = 1,
             .kind = "F",
             .name = "1F0",
             .stage = 1,
             .microbatch = 0,
             .start_us = 3.25,
             .duration_us = 10},
            {.rank = 0, .track = "wait", .kind = "recv", .name = "recv g3 m0 1>0"}}},
          {"predicted", 12, {{.rank = 1, .kind = "F", .name = "1F0", .stage = 1, .start_us = -1}}}};
}

constexpr forms::DocumentForm<std::vector<Timeline>> kForm{
    kTimelineDocument, [](const std::vector<Timeline>& all) { return to_json(all); },
    timelines_from_json,
    [](const std::vector<Timeline>& all, const std::filesystem::path& path) {
      return save(all, path);
    },
    load_timelines};

std::string complaint(const std::function<void(Json&)>& change) {
  return forms::complaint(kForm, both(), change);
}

TEST(TimelineJson, ComesBackTheSame) {
  EXPECT_EQ(timelines_from_json(to_json(both())), both());
  EXPECT_EQ(timelines_from_json(to_json(std::vector<Timeline>{})), std::vector<Timeline>{});
  const std::vector<Timeline> empty = {{"measured", -1, {}}, {"measured", 0, {}}};
  EXPECT_EQ(timelines_from_json(to_json(empty)), empty);
}

TEST(TimelineJson, IsAChromeTrace) {
  const Json json = to_json(both());
  std::string text;
  for (const Json& entry : json["traceEvents"]) text += compact_text(entry) + "\n";
  EXPECT_EQ(text,
            R"({"args":{"name":"rank 0"},"name":"process_name","ph":"M","pid":0}
{"args":{"name":"measured wait"},"name":"thread_name","ph":"M","pid":0,"tid":2}
{"args":{"name":"rank 1"},"name":"process_name","ph":"M","pid":1}
{"args":{"name":"measured compute"},"name":"thread_name","ph":"M","pid":1,"tid":1}
{"args":{"name":"predicted compute"},"name":"thread_name","ph":"M","pid":1,"tid":3}
{"args":{"microbatch":0,"stage":1},"cat":"F","dur":10.0,"name":"1F0","ph":"X","pid":1,"tid":1,"ts":3.25}
{"args":{},"cat":"recv","dur":0.0,"name":"recv g3 m0 1>0","ph":"X","pid":0,"tid":2,"ts":0.0}
{"args":{"stage":1},"cat":"F","dur":0.0,"name":"1F0","ph":"X","pid":1,"tid":3,"ts":-1.0}
)");
}

TEST(TimelineJson, TheExampleOfTheFormatsIsWhatTheCodeWrites) { forms::expect_example(kForm); }

TEST(TimelineJson, IsWrittenToAFileAndReadBack) { forms::expect_files(kForm, both()); }

TEST(TimelineJson, RefusesEventsThatAreNone) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  for (const TimelineEvent& bad :
       {TimelineEvent{.rank = -1}, TimelineEvent{.stage = -2}, TimelineEvent{.microbatch = -2},
        TimelineEvent{.start_us = kNaN}, TimelineEvent{.start_us = -2e15},
        TimelineEvent{.duration_us = -1}, TimelineEvent{.duration_us = 1e300}}) {
    try {
      to_json(std::vector<Timeline>{{"measured", 0, {bad}}});
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    }
  }
}

TEST(TimelineJson, ComplaintsNameTheField) {
  const auto event = [](Json& json) -> Json& { return json["traceEvents"][5]; };
  EXPECT_THAT(complaint([&](Json& j) { event(j)["tid"] = 4; }),
              HasSubstr("timeline.traceEvents[5].tid"));
  EXPECT_THAT(complaint([&](Json& j) { event(j)["tid"] = 0; }), HasSubstr("traceEvents[5].tid"));
  EXPECT_THAT(complaint([&](Json& j) { event(j)["ts"] = "inf"; }), HasSubstr("traceEvents[5].ts"));
  EXPECT_THAT(complaint([&](Json& j) { event(j)["dur"] = -1; }),
              HasSubstr("traceEvents[5]: \"dur\" is negative"));
  EXPECT_THAT(complaint([&](Json& j) { event(j)["args"]["stage"] = -1; }),
              HasSubstr("traceEvents[5].args.stage"));
  EXPECT_THAT(complaint([&](Json& j) { event(j)["args"]["extra"] = 1; }), HasSubstr("extra"));
  EXPECT_THAT(complaint([&](Json& j) { event(j)["ph"] = "B"; }), HasSubstr("traceEvents[5].ph"));
  EXPECT_THAT(complaint([](Json& j) { j["traceEvents"][1]["args"]["name"] = "measured"; }),
              HasSubstr("expected 'measured wait'"));
  EXPECT_THAT(complaint([](Json& j) { j["rows"][0]["timeline"] = 2; }),
              HasSubstr("timeline.rows[0].timeline"));
  EXPECT_THAT(complaint([](Json& j) { j["timelines"] = Json::array(); }),
              HasSubstr("timeline.rows[0].timeline"));
  EXPECT_THAT(complaint([](Json& j) { j["displayTimeUnit"] = "ns"; }),
              HasSubstr("displayTimeUnit"));
  EXPECT_THAT(complaint([](Json& j) { j.erase("traceEvents"); }), HasSubstr("traceEvents"));
}

}  // namespace
}  // namespace trireme::schedule
