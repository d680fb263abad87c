#pragma once

#include <vector>

#include "trireme/engine/checkpoint/reader.h"
#include "trireme/engine/checkpoint/writer.h"
#include "trireme/engine/optim/optimizer.h"
#include "trireme/engine/parameters/store.h"
#include "trireme/engine/record/recording.h"
#include "trireme/engine/train/training_options.h"
#include "trireme/engine/train/workload.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::train {

/// The tensors that a training goes on from, as far as a process holds them.
struct TrainingState {
  const record::Recording& recording;  ///< With the plan's copies.
  const layout::Plan& plan;
  const parameters::ParameterStore& store;
  optim::Optimizer& optimizer;
};

/// What the ranks of `stage` write into a checkpoint: parameters that the stage owns with their
/// optimizer state, its buffers; stage 0 also what no stage trains or uses. The same list on all of
/// them. Views of the state.
std::vector<checkpoint::Item> checkpoint_items(const TrainingState& state, int stage);

/// Puts back everything of a checkpoint that is held here, whatever the plan it was written under.
///
/// Errors   those of Reader: kInvalidArgument where the checkpoint is of another model.
void restore(const TrainingState& state, checkpoint::Reader& reader);

/// What decides the bits of a training: equal facts, equal bits after equally many steps. Names
/// that begin with `machine.` may differ where the arithmetic of machines does not.
checkpoint::Facts training_facts(const Workload& workload, const record::Recording& recorded,
                                 const layout::Plan& plan, const SessionOptions& options);

/// Throws kInvalidArgument for the first fact in which a run differs from the checkpoint that it
/// would go on from. Returns the machine's that differ, for a warning.
std::vector<std::string> check_facts(const checkpoint::Facts& saved, const checkpoint::Facts& now);

}  // namespace trireme::train
