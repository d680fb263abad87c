#pragma once

#include "trireme/plan/schedule/step_program.h"
#include "trireme/plan/schedule/timeline.h"
#include "trireme/plan/simulate/simulate.h"

namespace trireme::simulate {

/// Kind, name, stage and microbatch of an operation as an event; no rank, track or time yet.
schedule::TimelineEvent event_of(const schedule::StepProgram& program,
                                 const schedule::Operation& operation);

/// The simulation as a timeline named `predicted`: work on the compute track, waits on `wait`.
///
/// program   that was simulated.
schedule::Timeline predicted_timeline(const schedule::StepProgram& program,
                                      const Simulation& simulation);

}  // namespace trireme::simulate
