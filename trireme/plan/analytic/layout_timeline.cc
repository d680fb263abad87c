#include "trireme/plan/analytic/layout_timeline.h"

#include <string>
#include <vector>

#include "trireme/plan/analytic/pipeline_clock.h"
#include "trireme/plan/analytic/predict.h"
#include "trireme/plan/schedule/schedules.h"

namespace trireme::analytic {
namespace {

const char* letter_of(schedule::ActionKind kind) {
  switch (kind) {
    case schedule::ActionKind::kForward:
      return "F";
    case schedule::ActionKind::kBackward:
      return "B";
    case schedule::ActionKind::kBackwardInput:
      return "I";
    case schedule::ActionKind::kBackwardWeight:
      break;
  }
  return "W";
}

std::int64_t count_actions(const schedule::Schedule& schedule) {
  std::int64_t count = 0;
  for (const auto& actions : schedule.ranks) count += std::ssize(actions);
  return count;
}

}  // namespace

Json pipeline_timeline(const ModelShape& shape, const Machine& machine, const TrainLayout& layout,
                       const AchievedParts& achieved) {
  check(shape, layout);
  Json json = {{"ranks", layout.pipeline}, {"actions", nullptr}};
  const std::int64_t num_stages = layout.pipeline * layout.virtual_stages;
  json["num_actions"] = 2 * num_stages * layout.num_microbatches();
  if (json["num_actions"] > kMostDrawnActions) return json;
  const schedule::Schedule schedule = schedule::make_schedule(
      layout.schedule, static_cast<int>(num_stages), static_cast<int>(layout.num_microbatches()),
      static_cast<int>(layout.virtual_stages));
  json["num_actions"] = count_actions(schedule);
  std::vector<PlayedAction> actions;
  const PipelineTimes times = stage_seconds(shape, machine, layout, achieved).times;
  json["end_s"] = PipelineClock(schedule).play(times, &actions).step();
  json["actions"] = Json::array();
  for (const PlayedAction& one : actions) {
    json["actions"].push_back({one.rank, one.begin, one.end, letter_of(one.action.kind),
                               one.action.stage, one.action.microbatch});
  }
  return json;
}

}  // namespace trireme::analytic
