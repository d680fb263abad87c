#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace trireme::speech {

/// What a model is asked for in one round of a batch's decoding; all [B].
struct GreedyRound {
  std::span<const std::int32_t> frames;       ///< t, that scores are wanted for.
  std::span<const std::int32_t> last_labels;  ///< Emitted last; the blank before the first.

  /// 1 where the last label was emitted in the round before: there the prediction network moves on
  /// by that label before it is asked; elsewhere its state and output stay as they are.
  std::span<const std::uint8_t> has_new_label;

  /// 1 where a sample is done: its answer is not read, its frame is one that exists, or 0.
  std::span<const std::uint8_t> is_done;
};

/// A transducer with the state of a batch: encoder outputs, a prediction network's state for each
/// sample, and the joint of both.
class GreedyModel {
 public:
  virtual ~GreedyModel() = default;

  /// Sets best[b] to the label, blank among them, with the largest score for every sample at once.
  virtual void best_labels(const GreedyRound& round, std::span<std::int32_t> best) = 0;
};

struct GreedyOptions {
  std::int32_t blank = 0;
  std::int32_t max_symbols_per_frame = 30;
  std::int32_t max_symbols = 300;  ///< Of a sample.
};

/// Labels by greedy search: at each frame the best label is emitted until it is the blank or
/// max_symbols_per_frame have been emitted there; then the next frame. A sample is done after its
/// last frame or max_symbols. All samples take a step in every round, each at its own frame, so the
/// labels are those of decoding one sample after the other.
///
/// num_frames  [B], 0 or more.
/// Errors      kInvalidArgument for options below 1, negative lengths or answers, with the sample.
/// Cost        as many calls of the model as the sample with the most frames and symbols needs.
/// Source      Graves 2012 (loss.h), section 2.6 with a beam of 1; batched as NVIDIA's entry for
///             MLPerf v1.0 is.
std::vector<std::vector<std::int32_t>> decode_greedily(const GreedyOptions& options,
                                                       std::span<const std::int32_t> num_frames,
                                                       GreedyModel& model);

namespace internal {

void check_limits(const GreedyOptions& options);

}  // namespace internal

}  // namespace trireme::speech
