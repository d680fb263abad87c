#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "packs/speech/kernels/greedy.h"

namespace trireme::speech::reference {

/// The best label of one sample at a frame, after the labels so far.
using BestLabel =
    std::function<std::int32_t(std::int32_t frame, const std::vector<std::int32_t>& labels)>;

/// decode_greedily of one sample, as its header defines it.
inline std::vector<std::int32_t> decode_greedily(const GreedyOptions& options,
                                                 std::int32_t num_frames, const BestLabel& best) {
  std::vector<std::int32_t> labels;
  for (std::int32_t t = 0; t < num_frames; ++t) {
    for (std::int32_t symbols = 0; symbols < options.max_symbols_per_frame; ++symbols) {
      const std::int32_t label = best(t, labels);
      if (label == options.blank) break;
      labels.push_back(label);
      if (std::ssize(labels) == options.max_symbols) return labels;
    }
  }
  return labels;
}

}  // namespace trireme::speech::reference
