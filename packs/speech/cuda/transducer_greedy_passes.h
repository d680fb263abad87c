#pragma once

// The passes of transducer_greedy.h.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include "packs/speech/cuda/transducer_greedy.h"
#include "packs/speech/kernels/greedy.h"
#include "trireme/error.h"
#include "trireme/kernels/cuda/atomics.h"
#include "trireme/kernels/cuda/passes.h"
#include "trireme/kernels/half.h"

namespace trireme::speech::cuda::internal {

using namespace kernels;
using namespace kernels::cuda::internal;

/// A label and its score; at first label 0, which all others beat.
struct BestLabel {
  float score = -std::numeric_limits<float>::infinity();
  std::int32_t label = 0;

  /// The larger score, of equals the lower label. NaN is never larger.
  TRIREME_HOST_DEVICE void take(const BestLabel& other) {
    const bool is_better = other.score > score || (other.score == score && other.label < label);
    if (is_better) *this = other;
  }
};

struct GreedySpace {
  static constexpr std::int64_t kLanes = 256, kGroup = 16;  ///< kGroup squared is kLanes.

  GreedySpace(Cutter cutter, std::int64_t num_samples)
      : best(cutter.take<BestLabel>(num_samples * kLanes)), bytes(cutter.bytes()) {}

  BestLabel* best;  ///< [B, kLanes]
  std::int64_t bytes;
};

struct StartSample {
  std::int32_t blank;
  DeviceGreedyBatch batch;

  TRIREME_HOST_DEVICE void operator()(std::int64_t /*group*/, std::int64_t step,
                                      std::int64_t lane) const {
    if (step == 0) {
      if (lane == 0) *batch.num_running = 0;
      return;
    }
    std::int32_t running = 0;
    for (std::int64_t b = lane; b < batch.num_samples; b += GreedySpace::kLanes) {
      const bool is_done = batch.num_frames[b] <= 0;
      batch.frames[b] = 0;
      batch.last_labels[b] = blank;
      batch.has_new_label[b] = 0;
      batch.is_done[b] = is_done ? 1 : 0;
      batch.num_labels[b] = 0;
      batch.symbols_here[b] = 0;
      running += is_done ? 0 : 1;
    }
    if (running > 0) add_to(batch.num_running, running);
  }
};

/// The best label of sample `b`: each lane takes every 256th, 16 lanes take 16 of those each, and
/// the first takes theirs and moves the sample on.
template <typename T>
struct StepSample {
  static constexpr std::int64_t kSteps = 3;

  std::int32_t blank, max_symbols_per_frame, max_symbols;
  DeviceGreedyBatch batch;
  DeviceScores<T> scores;
  BestLabel* best;

  TRIREME_HOST_DEVICE void operator()(std::int64_t b, std::int64_t step, std::int64_t lane) const {
    constexpr std::int64_t kGroup = GreedySpace::kGroup;
    BestLabel* lanes = best + b * GreedySpace::kLanes;
    if (step == 0) {
      lanes[lane] = batch.is_done[b] != 0 ? BestLabel{} : best_of(b, lane);
    } else if (step == 1 && lane < kGroup) {
      for (std::int64_t i = 1; i < kGroup; ++i) lanes[lane * kGroup].take(lanes[lane * kGroup + i]);
    } else if (step == 2 && lane == 0) {
      for (std::int64_t i = 1; i < kGroup; ++i) lanes[0].take(lanes[i * kGroup]);
      advance(b, lanes[0].label);
    }
  }

  TRIREME_HOST_DEVICE BestLabel best_of(std::int64_t b, std::int64_t lane) const {
    BestLabel found;
    const T* row = scores.values + b * scores.vocabulary;
    for (std::int64_t label = lane; label < scores.vocabulary; label += GreedySpace::kLanes) {
      found.take({to_f32(row[label]), static_cast<std::int32_t>(label)});
    }
    return found;
  }

  /// As the processors' decoder does.
  TRIREME_HOST_DEVICE void advance(std::int64_t b, std::int32_t label) const {
    const bool was_done = batch.is_done[b] != 0;
    const bool is_symbol = !was_done && label != blank;
    batch.has_new_label[b] = is_symbol ? 1 : 0;
    if (was_done) return;
    if (is_symbol) {
      batch.labels[b * max_symbols + batch.num_labels[b]++] = label;
      batch.last_labels[b] = label;
      ++batch.symbols_here[b];
    }
    const bool moves_on = !is_symbol || batch.symbols_here[b] == max_symbols_per_frame;
    const bool is_last = moves_on && batch.frames[b] + 1 == batch.num_frames[b];
    if (moves_on) batch.symbols_here[b] = 0;
    if (moves_on && !is_last) ++batch.frames[b];
    if (!is_last && batch.num_labels[b] != max_symbols) return;
    batch.is_done[b] = 1;
    add_to(batch.num_running, -1);
  }
};

template <typename Each>
void start_greedy_passes(const GreedyOptions& options, const DeviceGreedyBatch& batch,
                         const Each& each) {
  speech::internal::check_limits(options);
  each.steps({1, 2, GreedySpace::kLanes}, StartSample{options.blank, batch});
}

template <typename T, typename Each>
void greedy_step_passes(const GreedyOptions& options, const DeviceGreedyBatch& batch,
                        const DeviceScores<T>& scores, std::span<std::byte> workspace,
                        const Each& each) {
  speech::internal::check_limits(options);
  if (scores.vocabulary < 1) {
    throw Error(ErrorKind::kInvalidArgument,
                "greedy decoding: expected a vocabulary of 1 label or more, got " +
                    std::to_string(scores.vocabulary));
  }
  const GreedySpace space(Cutter(workspace), batch.num_samples);
  check_workspace("greedy_step", workspace, space.bytes);
  each.steps({batch.num_samples, StepSample<T>::kSteps, GreedySpace::kLanes},
             StepSample<T>{options.blank, options.max_symbols_per_frame, options.max_symbols, batch,
                           scores, space.best});
}

}  // namespace trireme::speech::cuda::internal
