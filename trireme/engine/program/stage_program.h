#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "trireme/engine/program/node_program.h"
#include "trireme/engine/program/stage_autograd.h"
#include "trireme/engine/program/stage_captures.h"
#include "trireme/engine/program/stage_run.h"
#include "trireme/engine/record/recording.h"
#include "trireme/plan/layout/crossings.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::program {

class StageRegions;

/// One stage of a plan, compiled: runs microbatches forward and backward.
///
/// Immutable and thread-safe, but a StageRun belongs to one thread at a time.
class StageProgram {
 public:
  /// recording, sites   must outlive the program.
  /// sites also outlives runs.
  StageProgram(const record::Recording& recording, const layout::Plan& plan, int stage,
               const SiteTable& sites, Capture capture = Capture::kOn);
  ~StageProgram();
  StageProgram(StageProgram&&) noexcept;

  /// Values to be received before a forward, and sent after it (to Crossing::stages[1...]).
  const std::vector<layout::Crossing>& receives() const { return receives_; }
  const std::vector<layout::Crossing>& sends() const { return sends_; }

  /// Indices into Graph::losses of those that are made here.
  const std::vector<int>& losses() const { return losses_.made; }

  /// Indices into Graph::outputs of those that are given here.
  const std::vector<int>& outputs() const { return outputs_; }

  /// Of those with a weight, the ones whose total is needed here (layout::StageLosses).
  const std::vector<int>& weighed_losses() const { return losses_.weighed; }

  /// Whether what its microbatches keep is to be in a file between forward and backward (layout::Stage::offload).
  bool offloads() const { return offloads_; }

  /// Whether its forward runs again for the backward (layout::Stage::recompute).
  bool recomputes() const { return regions_ != nullptr; }

  /// Names of the batch's fields and step scalars that a forward takes.
  const std::vector<std::string>& fields() const { return fields_; }

  /// received   all of `receives()`, as `copy_across` makes them; taken over.
  StageRun forward(const MicrobatchInput& input, ValueMap received) const;

  /// Moves what the run keeps to a file in `folder`, after all values were sent; asks for it; has it in memory again.
  ///
  /// Errors   those of SavedTensors.
  static void offload(StageRun& run, const std::filesystem::path& folder);
  static void prefetch(const StageRun& run);
  static void fetch(StageRun& run);

  /// A value that the forward made; for `sends()`, `losses()`, `outputs()`.
  at::Tensor value(const StageRun& run, graph::ValueId value) const;

  /// Lets go of a value of a stage that recomputes, once it is sent.
  void release(StageRun& run, graph::ValueId value) const;

  /// Gradients of parameters go to the sink of the sites; returned are those of received values,
  /// as the backward made them, undefined ones left out. Ends the run.
  ///
  /// seeds   gradient of each loss value whose last use is in this stage (see `seeds_loss`), and of
  ///         each crossing value that comes back from the next stage of its chain.
  /// Errors   what a function of the backward throws, as node_failure says it; an Error of the sink
  ///          stays what it is.
  ValueMap backward(StageRun run, const ValueMap& seeds) const;

  /// The same in two parts, together with the same bits: first the gradients of received values, then those of
  /// parameters, which end the run.
  ValueMap backward_inputs(StageRun& run, const ValueMap& seeds) const;
  void backward_weights(StageRun run) const;

  /// What became of its capture: microbatches that are replayed without autograd.
  CaptureReport capture_report() const;

  /// The stage starts the backward of this loss: it makes it or is the last to use it.
  bool seeds_loss(int loss) const;

 private:
  /// Where a backward starts, and with which gradients.
  struct Start {
    std::vector<graph::ValueId> values;
    torch::autograd::edge_list roots;
    torch::autograd::variable_list gradients;
  };
  Start start_of(const StageRun& run, const ValueMap& seeds) const;
  void put_received(StageRun& run, ValueMap received) const;
  void make_leaves(StageRun& run) const;
  bool replay_forward(StageRun& run, const MicrobatchInput& input) const;
  void run_usual_forward(StageRun& run, const NodeStream& stream) const;
  bool take_captured(StageRun& run, const ValueMap& seeds) const;
  ValueMap in_turn(StageRun& run, const Start& start,
                   const std::function<ValueMap(const Start&)>& work) const;
  ValueMap run_usual_backward(StageRun& run, const Start& start) const;
  ValueMap run_usual_inputs(StageRun& run, const Start& start) const;
  capture::Replayer::Sites sites_sink() const;
  ValueMap replay_backward(StageRun& run, const ValueMap& seeds,
                           const capture::Replayer::Sites& sites) const;
  ValueMap replay_inputs(StageRun& run, const ValueMap& seeds) const;
  void replay_weights(StageRun& run, const capture::Replayer::Sites& sites) const;
  std::vector<at::Tensor> values_of_ends(const StageRun& run) const;
  [[noreturn]] void fail(const StageRun& run, const FailedFunction& failed) const;
  [[noreturn]] void fail_at(const graph::Node* node, const std::string& name,
                            const graph::BatchSize& size, const std::exception_ptr& thrown) const;
  [[noreturn]] void fail_replay(const StageRun& run, const capture::FailedCall& failed) const;

  const record::Recording& recording_;
  std::vector<layout::Crossing> receives_;
  std::vector<layout::Crossing> sends_;
  layout::StageLosses losses_;
  std::vector<int> outputs_;
  std::vector<std::string> fields_;
  bool offloads_;
  std::vector<graph::ValueId> ends_;  ///< That it makes, and a backward may begin at.
  std::unique_ptr<NodeProgram> nodes_;
  const SiteTable& sites_;
  std::unique_ptr<StageCaptures> captures_;  ///< Null where the stage is not to be captured.
  std::unique_ptr<StageRegions> regions_;    ///< Null where it does not recompute.
};

/// Of what lies in memory whether a microbatch needs it or not: parameters, buffers, constants.
std::set<const void*> model_storages(const record::Recording& recording);

/// An output of a microbatch: dense, in memory of its own.
///
/// batch   has the field, where the output is one.
/// made    gives its value, where a node makes it.
at::Tensor output_of(const graph::Graph& graph, const graph::Output& output, const Batch& batch,
                     const std::function<at::Tensor(graph::ValueId)>& made);

}  // namespace trireme::program
