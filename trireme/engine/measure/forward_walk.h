#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "trireme/engine/measure/node_trial.h"
#include "trireme/engine/record/recording.h"

namespace trireme::measure {

/// Runs the recorded forward once on `batch`, node after node, without keeping history: memory is
/// that of a forward without a backward.
///
/// batch   with its step scalars.
/// visit   called before each node runs, with the node at its place.
/// What the forward writes to buffers stays written.
void walk_forward(const record::Recording& recording, const Batch& batch,
                  const std::function<void(NodeTrial&)>& visit);

/// Puts the recording's buffers back as they were.
class BufferGuard {
 public:
  explicit BufferGuard(const record::Recording& recording);
  ~BufferGuard();
  BufferGuard(const BufferGuard&) = delete;
  BufferGuard& operator=(const BufferGuard&) = delete;

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> buffers_;  ///< And what they held.
};

}  // namespace trireme::measure
