#include "trireme/plan/simulate/predicted_timeline.h"

#include <string>

namespace trireme::simulate {

schedule::TimelineEvent event_of(const schedule::StepProgram& program,
                                 const schedule::Operation& operation) {
  schedule::TimelineEvent event;
  if (operation.kind == schedule::OperationKind::kCompute) {
    event.name = schedule::to_text(operation.action);
    event.kind = event.name.substr(event.name.find_first_not_of("0123456789"), 1);
    event.stage = operation.action.stage;
    event.microbatch = operation.action.microbatch;
  } else {
    event.name = schedule::to_text(program, operation);
    event.kind = event.name.substr(0, event.name.find(' '));
    event.microbatch = operation.microbatch;
  }
  return event;
}

schedule::Timeline predicted_timeline(const schedule::StepProgram& program,
                                      const Simulation& simulation) {
  schedule::Timeline timeline{"predicted", 0, {}};
  for (const SimulatedEvent& event : simulation.events) {
    schedule::TimelineEvent shown = event_of(program, program.ranks[event.rank][event.operation]);
    shown.rank = event.rank;
    const auto add = [&](const std::string& track, double begin_us, double end_us) {
      if (end_us <= begin_us) return;
      shown.track = track;
      shown.start_us = begin_us;
      shown.duration_us = end_us - begin_us;
      timeline.events.push_back(shown);
    };
    add(std::string(schedule::kComputeTrack), event.begin_us, event.worked_us);
    add("wait", event.worked_us, event.end_us);
  }
  return timeline;
}

}  // namespace trireme::simulate
