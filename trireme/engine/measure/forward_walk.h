#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "trireme/engine/measure/node_trial.h"
#include "trireme/engine/record/recording.h"
#include "trireme/engine/record/state_guard.h"

namespace trireme::measure {

/// Runs the recorded forward once on `batch`, node after node, without keeping history: memory is
/// that of a forward without a backward.
///
/// batch   with its step scalars.
/// visit   called before each node runs, with the node at its place.
/// What the forward writes to buffers stays written.
void walk_forward(const record::Recording& recording, const Batch& batch,
                  const std::function<void(NodeTrial&)>& visit);

/// Puts what forwards write, buffers and rescaled parameters, back as it was.
class WriteGuard {
 public:
  explicit WriteGuard(const record::Recording& recording);

 private:
  record::TensorKeeper tensors_;
};

}  // namespace trireme::measure
