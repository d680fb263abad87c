#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "trireme/engine/program/capture_turn.h"
#include "trireme/engine/program/captured_stage.h"

namespace trireme::program {

/// Whether stages are captured, to be replayed without autograd where that gives the same bits. Decides speed only.
enum class Capture : std::uint8_t { kOff, kOn };

/// A microbatch between a replayed forward and the end of its backward.
struct CapturedRun {
  std::shared_ptr<CapturedStage> stage;
  capture::ReplayedRun run;
  bool has_weights = false;  ///< The second part of its backward is to come.
  std::optional<CaptureInput>
      input;  ///< Where its backward may begin elsewhere, to run its forward again.
};

/// What became of the captures of a stage.
struct CaptureReport {
  int num_replayed = 0;               ///< Microbatch sizes that are replayed.
  std::vector<std::string> refusals;  ///< Why others are not, one each.
};

/// The captures of one stage, by microbatch size. Thread-safe.
class StageCaptures {
 public:
  /// As of CaptureContext.
  StageCaptures(const record::Recording& recording, const NodeProgram& nodes,
                std::vector<graph::ValueId> leaves);

  /// The capture for microbatches like this one; null where none is to be made.
  std::shared_ptr<CapturedStage> find(const graph::BatchSize& size, const CaptureInput& input);

  /// As `begin_turn`.
  std::unique_ptr<CaptureTurn> begin(std::shared_ptr<CapturedStage> stage,
                                     const CaptureInput& input) const {
    return begin_turn(context_, std::move(stage), input);
  }

  /// The values where the stage ends. Errors: what an operator throws, as node_failure says it.
  std::vector<at::Tensor> forward(CapturedRun& run, CaptureInput input,
                                  const graph::BatchSize& size) const;

  /// Whether a backward from these gradients, by value, is what was captured. It is not where a loss has no gradient in
  /// this step: in a turn of others, or where no sample counts.
  static bool holds_for(const CapturedRun& run, const ValueMap& seeds);

  /// The gradients of received values. Where the capture has two parts, this is the first.
  ///
  /// seeds    by value; for which the capture holds.
  /// Errors   capture::FailedCall, to be explained by `stage->functions`.
  ValueMap backward(CapturedRun& run, const ValueMap& seeds,
                    const capture::Replayer::Sites& sites) const;

  /// `stage`, captured whole, met a backward in two parts: what comes is captured anew, as such.
  void capture_in_two_parts(const std::shared_ptr<CapturedStage>& stage);

  /// The second part, where there is one. Errors   as of `backward`.
  static void weights(CapturedRun& run, const capture::Replayer::Sites& sites);

  CaptureReport report() const;

 private:
  CaptureContext context_;
  std::string never_;         ///< Why the stage cannot be captured.
  mutable std::mutex mutex_;  ///< Guards stages_.
  std::map<CaptureKey, std::shared_ptr<CapturedStage>> stages_;
};

}  // namespace trireme::program
