#include "trireme/plan/schedule/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "trireme/base/error.h"
#include "trireme/plan/schedule/schedules.h"

namespace trireme::schedule {
namespace {

using ::testing::HasSubstr;

TEST(ScheduleJson, ComesBackTheSame) {
  for (const std::string& name : schedule_names()) {
    const Schedule schedule = make_schedule(name, 3, 4);
    EXPECT_EQ(schedule_from_json(to_json(schedule)), schedule);
  }
}

std::string complaint(const std::function<void(Json&)>& change) {
  Json json = to_json(make_schedule("simple", 2, 2));
  change(json);
  try {
    schedule_from_json(json);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
    return error.message();
  }
  return "";
}

TEST(ScheduleJson, ComplaintsNameTheField) {
  EXPECT_THAT(complaint([](Json& j) { j["ranks"][1][2] = "1X0"; }),
              HasSubstr("schedule.ranks[1][2]: '1X0' is not an action"));
  EXPECT_THAT(complaint([](Json& j) { j["ranks"][1][2] = 3; }), HasSubstr("schedule.ranks[1][2]"));
  EXPECT_THAT(complaint([](Json& j) { j["num_stages"] = 0; }), HasSubstr("schedule.num_stages"));
  EXPECT_THAT(complaint([](Json& j) { j.erase("num_microbatches"); }),
              HasSubstr("num_microbatches"));
  EXPECT_THAT(complaint([](Json& j) { j["extra"] = 1; }), HasSubstr("extra"));
}

}  // namespace
}  // namespace trireme::schedule
