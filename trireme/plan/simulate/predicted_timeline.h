#pragma once

#include "trireme/plan/schedule/step_program.h"
#include "trireme/plan/simulate/simulate.h"
#include "trireme/plan/timeline/timeline.h"

namespace trireme::simulate {

/// Kind, name, stage and microbatch of an operation as an event; no rank, track or time yet.
timeline::Event event_of(const schedule::StepProgram& program,
                         const schedule::Operation& operation);

/// The simulation as a timeline named `predicted`: work on the compute track, waits on `wait`.
///
/// program   that was simulated.
timeline::Timeline predicted_timeline(const schedule::StepProgram& program,
                                      const Simulation& simulation);

}  // namespace trireme::simulate
