#include "trireme/engine/train/measured_timeline.h"

#include "trireme/plan/simulate/predicted_timeline.h"
#include "trireme/plan/timeline/json.h"

namespace trireme::train {
namespace {

bool waits(schedule::OperationKind kind) {
  using schedule::OperationKind;
  return kind == OperationKind::kRecv || kind == OperationKind::kJoin ||
         kind == OperationKind::kExchange || kind == OperationKind::kNorm;
}

}  // namespace

timeline::Timeline measured_timeline(const World& world, const RankSession& session) {
  timeline::Timeline own{"measured", session.next_step() - 1, {}};
  for (const pipeline::OperationTime& time : session.times()) {
    timeline::Event event = simulate::event_of(session.program(), time.operation);
    event.rank = world.rank();
    if (waits(time.operation.kind)) event.track = "wait";
    event.start_us = time.start_us;
    event.duration_us = time.duration_us;
    own.events.push_back(std::move(event));
  }
  timeline::Timeline all{own.name, own.step, {}};
  const std::string text = timeline::to_json(std::span(&own, 1)).dump();
  for (const std::string& one : gather(world, text, "timelines")) {
    for (timeline::Timeline& part : timeline::timelines_from_json(Json::parse(one))) {
      all.events.insert(all.events.end(), part.events.begin(), part.events.end());
    }
  }
  return all;
}

}  // namespace trireme::train
