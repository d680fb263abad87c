#pragma once

#include <torch/csrc/autograd/edge.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "trireme/engine/program/node_program.h"
#include "trireme/engine/program/saved_tensors.h"
#include "trireme/engine/program/split_backward.h"
#include "trireme/engine/program/stage_autograd.h"
#include "trireme/engine/program/stage_captures.h"
#include "trireme/model.h"

namespace trireme::program {

/// What a microbatch brings to a forward.
struct MicrobatchInput {
  const Batch& batch;
  graph::BatchSize size;
  NodeStream stream;
};

struct StageRun;

/// What is kept of a microbatch in a stage that recomputes (StageRegions).
struct RegionRuns {
  ValueMap kept;  ///< What the stage received, and what goes from region to region.
  std::map<std::string, at::Tensor> fields;  ///< That the stage takes.
  NodeStream stream;
  std::vector<StageRun> waiting;  ///< Between the parts of a backward, the last region first.
  std::unique_ptr<OffloadedTensors> file;  ///< Where all this is, while it is undefined.
};

/// One microbatch in one stage, between its forward and its backward.
struct StageRun {
  Slots slots;
  graph::BatchSize size;
  /// Where the backward ends at received values that want a gradient: CaptureNodes.
  std::map<graph::ValueId, NodePtr> leaves;
  /// Where it may begin: at those, at values that are sent, at losses.
  std::map<graph::ValueId, torch::autograd::Edge> roots;
  std::unique_ptr<SavedTensors> saved;    ///< Of a stage that offloads.
  WeightWork weight_work;                 ///< Between the two parts of a backward.
  std::unique_ptr<CapturedRun> captured;  ///< Of a forward that was replayed without autograd.
  std::unique_ptr<CaptureTurn> turn;      ///< Of one that serves the capture.
  std::unique_ptr<RegionRuns> regions;    ///< Of a stage that recomputes: all that it keeps.
};

}  // namespace trireme::program
