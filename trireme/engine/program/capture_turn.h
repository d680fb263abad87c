#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

#include "trireme/engine/program/captured_stage.h"
#include "trireme/engine/program/node_program.h"
#include "trireme/engine/record/recording.h"

namespace trireme::program {

/// What a microbatch does for the capture of its stage beside its usual run: it is listened to, or compared with a
/// replay. Given up before its end, another may do it. Confined to the thread that runs the stage.
class CaptureTurn {
 public:
  virtual ~CaptureTurn() = default;

  /// Runs `work`, the usual forward of `slots`, and then asks for what it made of the values where the stage ends.
  virtual void forward(const Slots& slots, const std::function<void()>& work,
                       const std::function<std::vector<at::Tensor>()>& ends) = 0;

  /// A backward, from `seeds` with these gradients.
  struct Start {
    std::vector<graph::ValueId> roots, seeds;
    std::vector<at::Tensor> gradients;  ///< Of seeds.
  };

  /// Runs `work`, the usual backward or the first part of it, which gives the gradients of `leaves`.
  virtual ValueMap backward(const Start& start, const Slots& slots,
                            const std::function<ValueMap()>& work) = 0;

  /// Runs `work`, the second part.
  virtual void weights(const Slots& slots, const std::function<void()>& work) = 0;

  /// The backward has run.
  virtual void finish() = 0;
};

/// What turns know of the stage; outlives them.
struct CaptureContext {
  const record::Recording& recording;
  const NodeProgram& nodes;
  std::vector<graph::ValueId> leaves;  ///< Received values that want a gradient, ascending.
};

/// One microbatch of the stage.
struct CaptureInput {
  std::vector<at::Tensor> tensors;
  NodeStream stream;
};

/// The turn that the capture wants next; null where it wants none now.
std::unique_ptr<CaptureTurn> begin_turn(const CaptureContext& context,
                                        std::shared_ptr<CapturedStage> captured,
                                        const CaptureInput& input);

/// Calls `run` with torch's generator at the start of the stream of the node at `position` of `nodes`.
void run_seeded(const NodeProgram& nodes, int position, const NodeStream& stream,
                const std::function<void()>& run);

}  // namespace trireme::program
