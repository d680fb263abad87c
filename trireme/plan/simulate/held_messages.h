#pragma once

#include <cstdint>
#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/schedule/causes.h"

namespace trireme::simulate {

/// Bytes of messages that a rank holds at one of its actions if all goes as badly as the
/// order of the step allows: what it has sent and others need not have taken, and what can have
/// come before it asks.
struct HeldMessages {
  std::int64_t during = 0;  ///< While the action runs.
  std::int64_t after = 0;   ///< When its sends are posted and the rank waits for the next action.
  std::int64_t before = 0;  ///< Of its first action: while it waits for that.
};

/// A message of every microbatch.
struct SentBytes {
  schedule::Message message;
  std::int64_t bytes = 0;  ///< Without its header.
};

/// By action of a rank of the pipeline.
///
/// sent     the messages of all stages, values and gradients, ascending.
/// causes   of the same messages.
std::vector<HeldMessages> held_messages(const schedule::Causes& causes,
                                        const std::vector<SentBytes>& sent, int rank);

/// Messages of a rank that runs as many replicas, by action of its own (schedule::actions_of_rank). While it is at an action
/// for one of them, the others wait behind the same one or behind the one before.
///
/// held   by action of the position, of one replica.
std::vector<HeldMessages> messages_of_replicas(const std::vector<HeldMessages>& held,
                                               int num_replicas);

/// By rank of the pipeline, by action of its schedule.
///
/// planned, plan   as for schedule::make_step_program.
/// Errors          those of schedule::make_schedule.
/// Cost            actions x ranks x channels of a rank.
std::vector<std::vector<HeldMessages>> held_messages(const graph::Graph& planned,
                                                     const layout::Plan& plan);

}  // namespace trireme::simulate
