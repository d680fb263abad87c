#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "trireme/engine/pipeline/step_runner.h"
#include "trireme/plan/schedule/step_program.h"
#include "trireme/plan/schedule/timeline.h"
#include "trireme/wire/collectives/world.h"

namespace trireme::train {

/// A step program that this rank has run its part of.
struct RanProgram {
  std::string name;
  std::int64_t step = 0;
  schedule::StepProgram program;
  std::vector<pipeline::OperationTime> times;
  std::chrono::steady_clock::time_point begin;
};

/// What all ranks did, as a timeline of that name, on every rank. Work is on the compute track,
/// operations that wait for others, and a send's wait for room, on `wait`. Zero is when the first
/// rank of a machine began: ranks of one machine are aligned, machines are not. Every rank calls
/// it.
schedule::Timeline measured_timeline(const collectives::World& world, const RanProgram& ran);

}  // namespace trireme::train
