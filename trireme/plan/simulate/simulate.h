#pragma once

#include <vector>

#include "trireme/plan/schedule/step_program.h"
#include "trireme/plan/simulate/prices.h"
#include "trireme/plan/topology/topology.h"

namespace trireme::simulate {

/// When a rank was at an operation.
struct SimulatedEvent {
  int rank = 0;
  int operation = 0;  ///< Index into the rank's program.
  double begin_us = 0;
  double worked_us = 0;  ///< Its work was done; from then on it waited.
  double end_us = 0;
  bool operator==(const SimulatedEvent&) const = default;
};

/// When the messages of a channel were posted, had come, and were taken; in order.
struct ChannelTimes {
  std::vector<double> posted_us, arrived_us, taken_us;
};

/// A step that was played through.
struct Simulation {
  double step_us = 0;
  std::vector<double> busy_us;         ///< By rank: time in which it had work.
  std::vector<SimulatedEvent> events;  ///< In order of their ends; those of no duration left out.
  std::vector<ChannelTimes>
      channels;  ///< By channel of the program; empty between ranks that were not played.
};

/// Plays a step: each rank runs its operations in order.
///
///  * work: ranks that share cores share the processor; with more ranks at work than cores each
///    progresses at cores / ranks;
///  * a message takes its delay, after the one before it on its channel; its sender goes on, once
///    its channel has room;
///  * over links that the topology says are shared, messages and collectives slow each other (shared_links.h);
///  * a collective begins when all of its group are there and the group's one before is done. A
///    reduce is there once `ready_us` of the next operation's work are done and those before it
///    are; it runs beside the rank's other operations until it joins, and a gather of sharded values until it is
///    awaited; others are waited for.
///
/// program, prices   of the same step; ranks are those of `topology`.
/// played_by         by rank, the one that does the same at the same times and is played for it (alike_replicas.h);
///                   itself where it is played. Others need no operations. Empty: all are played.
/// Errors            kInvalidArgument where ranks wait for ever, naming the operations.
/// Cost              operations x the logarithm of the ranks; where ranks share cores, x those that do; messages over shared
///                   links x those under way.
Simulation simulate(const schedule::StepProgram& program, const Prices& prices,
                    const topology::Topology& topology, const std::vector<int>& played_by = {});

}  // namespace trireme::simulate
