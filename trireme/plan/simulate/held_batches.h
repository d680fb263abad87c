#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/schedule/action.h"

namespace trireme::simulate {

/// What samples are read for.
struct SampleUse {
  bool forward = false;  ///< A node takes a field.
  bool weights =
      false;  ///< The weight of a loss that is reported or seeded there is computed from fields.

  SampleUse& operator|=(SampleUse other) {
    forward |= other.forward;
    weights |= other.weights;
    return *this;
  }
  bool operator==(const SampleUse&) const = default;
};

/// By position: what a stage needs samples for if it has that node. Cost   linear in nodes, for each loss with a weight.
std::vector<SampleUse> sample_uses(const graph::Graph& planned);

/// Samples of one microbatch: read for its forward, dropped after it but for what nodes save.
std::int64_t batch_bytes(const graph::Graph& planned, std::int64_t microbatch);

/// Microbatches of that size that a rank reads ahead: one, and up to 16 where those are 4 MiB
/// together. Small ones are run so fast that a thread that reads one ahead may come too late.
int batches_ahead(std::int64_t batch_bytes);

/// Whether a rank that takes the samples of a step for the weights of losses first, and for the
/// forwards later, keeps them in between: where they are 32 MiB together at most. It then reads as
/// many ahead, for the next step; else it reads them twice.
bool keeps_batches(std::int64_t batch_bytes, std::int64_t num_microbatches);

/// Samples that a rank holds: of the microbatches that run and of those read ahead; where weights of
/// losses need samples, of a whole step, if it keeps them (`keeps_batches`). None where it needs none.
///
/// batch_bytes        of a microbatch.
/// num_microbatches   of a step of the rank.
/// num_running        whose samples it holds for forwards at once: 1 but where several of its stages take them.
std::int64_t held_batch_bytes(std::int64_t batch_bytes, SampleUse use,
                              std::int64_t num_microbatches, std::int64_t num_running = 1);

/// By position of the pipeline, of a rank there.
///
/// actions   by position: of one of its ranks (schedule::actions_of_rank).
std::vector<std::int64_t> held_batch_bytes(const graph::Graph& planned, const layout::Plan& plan,
                                           std::span<const std::vector<schedule::Action>> actions);

}  // namespace trireme::simulate
