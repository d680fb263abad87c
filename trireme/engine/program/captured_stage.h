#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trireme/engine/capture/replayer.h"
#include "trireme/plan/graph/graph.h"

namespace trireme::program {

/// Values by id: what goes from one stage to another.
using ValueMap = std::map<graph::ValueId, at::Tensor>;

/// What a capture of a stage holds for.
struct CaptureKey {
  std::pair<std::int64_t, int> size;  ///< Samples, and Graph::shorter.
  std::vector<std::int64_t> sizes;    ///< Of all inputs.
  auto operator<=>(const CaptureKey&) const = default;
};

/// How far the capture of a stage is at one microbatch size. A microbatch is listened to, a later one is run both ways
/// and compared bit by bit; from then on a replay takes the place of torch's dispatcher and engine.
///
/// Thread-safe: what is not atomic belongs to the turn that is on while the state says so, and is read only afterwards.
struct CapturedStage {
  enum class State : std::uint8_t { kNew, kListening, kHeard, kComparing, kTrusted, kRefused };

  /// What called an operator in the backward, for messages.
  struct Function {
    std::string name;
    const graph::Node* node;  ///< Null where none is known.
  };

  std::atomic<State> state = State::kNew;
  std::atomic_flag is_refused;
  std::string reason;  ///< Of kRefused.
  std::unique_ptr<capture::Replayer> replayer;
  std::vector<Function> functions;    ///< By TapeStep::origin of the backward's calls.
  std::vector<graph::ValueId> roots;  ///< Where the backward may begin.
  std::vector<graph::ValueId> seeds;  ///< Where it begins.
  bool has_two_parts = false;         ///< Gradients of parameters come in a part of their own.
  bool wants_two_parts = false;       ///< Some of its backwards have: such a capture serves all.

  /// From here on microbatches are run by torch; those whose forward was replayed, come to their end.
  void refuse(const std::string& why) {
    if (is_refused.test_and_set()) return;
    reason = why;
    state = State::kRefused;
  }
};

}  // namespace trireme::program
