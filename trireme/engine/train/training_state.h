#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "trireme/engine/checkpoint/checkpoint_reader.h"
#include "trireme/engine/checkpoint/checkpoint_writer.h"
#include "trireme/engine/parameters/optimizers/optimizer.h"
#include "trireme/engine/parameters/parameter_store.h"
#include "trireme/engine/record/recording.h"
#include "trireme/engine/train/batch_reader.h"
#include "trireme/engine/train/loss_scale.h"
#include "trireme/engine/train/training_options.h"
#include "trireme/plan/graph/graph.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::train {

/// By registered name.
using Tensors = std::map<std::string, at::Tensor>;

/// The tensors that a training goes on from, as far as a process holds them.
struct TrainingState {
  const record::Recording& recording;  ///< With the plan's copies.
  const layout::Plan& plan;
  const parameters::ParameterStore& store;
  parameters::Optimizer& optimizer;
  const std::vector<int>& stages;  ///< That the process runs.
  parameters::Part part = {};      ///< That it updates.
  LossScale* loss_scale = nullptr;
};

/// Where the current data of a registered tensor is.
struct Origin {
  int stage = 0;
  std::vector<std::int64_t> shape;
};

/// By name, aliases too; tensors that no stage uses are the same on all ranks and not listed.
///
/// graph   with the plan's copies.
std::map<std::string, Origin> origins(const graph::Graph& graph, const layout::Plan& plan,
                                      const parameters::ParameterStore& store);

/// Frees the frozen parameters that only other stages than these use; they have the shape [0]
/// then. Nothing with one stage.
///
/// recording   with the plan's copies.
void release_frozen(const record::Recording& recording, const layout::Plan& plan,
                    const std::vector<int>& stages);

/// Model::fill for every parameter that is here: those that the optimizer does not have, too.
void fill_parameters(const Model& model);

/// What the ranks of the state's stages write into a checkpoint: parameters that the stages own with
/// their optimizer state, frozen ones of which one is the first user, their buffers; stage 0 also what
/// no stage uses. The same list on all of them, but for state that replicas share. Views of the state.
std::vector<checkpoint::KeyedTensor> checkpoint_items(const TrainingState& state);

/// Puts back everything of a checkpoint that is held here, whatever the plan it was written under.
///
/// Errors   those of Reader: kInvalidArgument where the checkpoint is of another model.
void restore(const TrainingState& state, checkpoint::Reader& reader);

/// What decides the bits of a training: equal facts, equal bits after equally many steps. Names
/// that begin with `machine.` may differ where the arithmetic of machines does not.
checkpoint::Facts training_facts(const Workload& workload, const record::Recording& recorded,
                                 const layout::Plan& plan, const TrainingOptions& options);

/// What has changed about a fact that is a hash, in words; empty where that cannot be said.
using DescribeChange = std::function<std::string(const std::string& fact)>;

/// Throws kInvalidArgument, saying what has changed (`learning_rate: 0.01 -> 0.02`), where a run
/// differs from the checkpoint that it would go on from. Returns the machine's facts that differ,
/// for a warning. With another seed, other data are its consequence and not named.
std::vector<std::string> check_facts(const checkpoint::Facts& saved, const checkpoint::Facts& now,
                                     const DescribeChange& describe = {});

}  // namespace trireme::train
