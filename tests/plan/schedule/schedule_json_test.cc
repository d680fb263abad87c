#include "trireme/plan/schedule/schedule_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>

#include "tests/plan/schedule/step_cases.h"
#include "trireme/base/files.h"
#include "trireme/error.h"
#include "trireme/plan/schedule/check_program.h"
#include "trireme/plan/schedule/schedules.h"

namespace trireme::schedule {
namespace {

using ::testing::HasSubstr;
using testing::make_case;
using testing::StepCase;

/// The complaint of `read` about a document or a file.
std::string refusal_of(const auto& input, auto read) {
  try {
    read(input);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCorruptData);
    return error.message();
  }
  return "";
}

TEST(ScheduleJson, ComesBackTheSame) {
  for (const int each : {1, 2}) {
    for (const std::string& name : schedule_names(each)) {
      const Schedule schedule = make_schedule(name, 6, 4, each);
      EXPECT_EQ(schedule_from_json(to_json(schedule)), schedule);
    }
  }
}

TEST(ScheduleJson, ComplaintsNameTheField) {
  const auto after = [](const std::function<void(Json&)>& change) {
    Json json = to_json(make_schedule("simple", 2, 2));
    change(json);
    return refusal_of(json, schedule_from_json);
  };
  EXPECT_THAT(after([](Json& j) { j["ranks"][1][2] = "1X0"; }),
              HasSubstr("schedule.ranks[1][2]: '1X0' is not an action"));
  EXPECT_THAT(after([](Json& j) { j["ranks"][1][2] = 3; }), HasSubstr("schedule.ranks[1][2]"));
  EXPECT_THAT(after([](Json& j) { j["num_stages"] = 0; }), HasSubstr("schedule.num_stages"));
  EXPECT_THAT(after([](Json& j) { j.erase("num_microbatches"); }), HasSubstr("num_microbatches"));
  EXPECT_THAT(after([](Json& j) { j["extra"] = 1; }), HasSubstr("extra"));
}

StepCase three_stages() {
  return make_case(testing::make_skips_and_ties(),
                   {.cuts = {1, 3}, .replicas = 2, .has_norm = true});
}

TEST(StepProgramJson, ComesBackTheSame) {
  const unsigned seed = 7;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 100; ++i) {
    const StepProgram program = testing::make_random_case(random).program;
    EXPECT_EQ(step_program_from_json(to_json(program)), program) << i;
  }
  EXPECT_EQ(step_program_from_json(to_json(three_stages().program)), three_stages().program);
}

TEST(StepProgramJson, LimitsOfChannelsComeBackToo) {
  const StepCase step = three_stages();
  const StepProgram program = make_evaluation_program(step.graph, step.plan, 5);
  ASSERT_GT(program.channels.front().limit, 0);
  EXPECT_EQ(step_program_from_json(to_json(program)), program);
  Json json = to_json(program);
  json["channels"][0]["limit"] = 0;
  EXPECT_THAT(refusal_of(json, step_program_from_json), HasSubstr("channels[0].limit"));
}

TEST(StepProgramJson, ComplaintsNameTheField) {
  const auto after = [](const std::function<void(Json&)>& change) {
    Json json = to_json(three_stages().program);
    change(json);
    return refusal_of(json, step_program_from_json);
  };
  EXPECT_THAT(
      after([](Json& j) { j["ranks"][3][0] = "recv v3 m0 1>0"; }),
      HasSubstr("step program.ranks[3][0]: 'recv v3 m0 1>0' is not an operation of rank 3"));
  EXPECT_THAT(after([](Json& j) { j["ranks"][3][0] = "go"; }), HasSubstr("unknown word"));
  EXPECT_THAT(after([](Json& j) { j["ranks"][0][0] = "compute 0X0"; }),
              HasSubstr("step program.ranks[0][0]: '0X0' is not an action"));
  EXPECT_THAT(after([](Json& j) { j["channels"][2]["kind"] = "values"; }),
              HasSubstr("step program.channels[2].kind"));
  EXPECT_THAT(after([](Json& j) { j["channels"][2]["to_rank"] = -1; }),
              HasSubstr("step program.channels[2].to_rank"));
  EXPECT_THAT(after([](Json& j) { j["groups"][0]["ranks"][1] = "1"; }),
              HasSubstr("step program.groups[0].ranks[1]"));
  EXPECT_THAT(after([](Json& j) { j["groups"] = Json::array(); }),
              HasSubstr("the rank is in no such group"));
  EXPECT_THAT(after([](Json& j) { j["num_microbatches"] = 0; }), HasSubstr("num_microbatches"));
  EXPECT_THAT(after([](Json& j) { j["extra"] = 1; }), HasSubstr("extra"));
}

TEST(StepProgramJson, FilesLoadAndErrorsNameThem) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("trireme_program_" + std::to_string(getpid()) + ".json");
  const StepCase step = three_stages();
  save(step.program, path);
  EXPECT_EQ(load_step_program(path), step.program);
  EXPECT_NO_THROW(check(load_step_program(path), step.schedule, step.facts));
  EXPECT_THROW(load_schedule(path), Error);
  save(step.schedule, path);
  EXPECT_EQ(load_schedule(path), step.schedule);
  write_document(path, kScheduleDocument, {{"ranks", 1}});
  EXPECT_THAT(refusal_of(path, load_schedule), HasSubstr(path.string()));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace trireme::schedule
