#include "trireme/engine/train/measured_timeline.h"

#include <algorithm>
#include <chrono>
#include <string_view>

#include "trireme/engine/measure/detect_topology.h"
#include "trireme/plan/schedule/timeline_json.h"
#include "trireme/plan/simulate/predicted_timeline.h"

namespace trireme::train {
namespace {

constexpr std::string_view kWaitTrack = "wait";

bool waits(schedule::OperationKind kind) {
  using schedule::Wait;
  const Wait wait = schedule::row_of(kind).wait;
  return wait == Wait::kMessage || wait == Wait::kSum || wait == Wait::kGroup ||
         wait == Wait::kValues;
}

/// How much later than the first rank of its machine this rank began.
double late_us(const collectives::World& world, const RanProgram& ran) {
  using Microseconds = std::chrono::duration<double, std::micro>;
  const Microseconds own = ran.begin.time_since_epoch();
  const Json mine = {{"host", measure::host_name()}, {"begin_us", own.count()}};
  double first = own.count();
  for (const std::string& text : collectives::gather(world, mine.dump(), "times")) {
    const Json other = Json::parse(text);
    if (other["host"] == mine["host"]) first = std::min(first, other["begin_us"].get<double>());
  }
  return own.count() - first;
}

}  // namespace

schedule::Timeline measured_timeline(const collectives::World& world, const RanProgram& ran) {
  const double late = late_us(world, ran);
  schedule::Timeline own{ran.name, ran.step, {}};
  for (const pipeline::OperationTime& time : ran.times) {
    schedule::TimelineEvent event = simulate::event_of(ran.program, time.operation);
    event.rank = world.rank();
    const auto add = [&](std::string_view track, double start_us, double duration_us) {
      event.track = track;
      event.start_us = late + start_us;
      event.duration_us = duration_us;
      own.events.push_back(event);
    };
    if (time.room_us > 0) add(kWaitTrack, time.start_us, time.room_us);
    add(waits(time.operation.kind) ? kWaitTrack : schedule::kComputeTrack,
        time.start_us + time.room_us, time.duration_us - time.room_us);
  }
  schedule::Timeline all{own.name, own.step, {}};
  const std::string text = schedule::to_json(std::span(&own, 1)).dump();
  for (const std::string& one : collectives::gather(world, text, "timelines")) {
    for (schedule::Timeline& part : schedule::timelines_from_json(Json::parse(one))) {
      all.events.insert(all.events.end(), part.events.begin(), part.events.end());
    }
  }
  return all;
}

}  // namespace trireme::train
