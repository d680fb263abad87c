#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/engine/reference/trial.h"
#include "trireme/plan/graph/cuts.h"

namespace trireme::reference {

inline constexpr BatchLayout kBatch{.global_batch = 12, .microbatch = 3, .lanes = 2};

inline std::vector<int> cut_positions(const graph::Graph& graph) {
  const std::vector<bool> allowed = graph::allowed_cuts(graph);
  std::vector<int> result;
  for (std::size_t c = 0; c < allowed.size(); ++c) {
    if (allowed[c]) result.push_back(static_cast<int>(c));
  }
  return result;
}

/// Cuts a test model into 3, 4 and 5 stages, `num_samples` times each at seeded random places, and
/// expects the bits of the uncut model.
inline void try_random_cuts(const std::string& model_name, int num_samples) {
  Trial trial(model_name, kBatch);
  const StepRecord whole = trial.run_cut({});
  const std::vector<int> cuts = cut_positions(trial.recording.graph);
  std::mt19937 random(42);
  for (std::size_t stages : {3, 4, 5}) {
    for (int sample = 0; sample < num_samples; ++sample) {
      std::vector<int> chosen;
      std::sample(cuts.begin(), cuts.end(), std::back_inserter(chosen), stages - 1, random);
      EXPECT_EQ(difference(whole, trial.run_cut(chosen)), "")
          << testing::PrintToString(chosen) << ", seed 42";
    }
  }
}

}  // namespace trireme::reference
