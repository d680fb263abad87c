#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/random_nets/random_net.h"
#include "trireme/engine/train/construct_workload.h"
#include "trireme/engine/train/first_step_check.h"
#include "trireme/error.h"
#include "trireme/plan/graph/cuts.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/manual_plan.h"
#include "trireme/plan/layout/plan_check.h"

namespace trireme::train {

/// What becomes of a random net.
enum class Fate {
  kSame,       ///< Cut everywhere, it gives the plain model's bits.
  kRefused,    ///< By the recorder.
  kInvalid,    ///< Plain torch refuses it.
  kNotFinite,  ///< Not compared.
  kDiffers,
};

struct RandomTrial {
  Fate fate = Fate::kSame;
  std::string text;  ///< Why it is refused, or what differs.
};

/// Compares under every cut at once, as stages and as regions of one that recomputes, and now and then under two that the
/// seed picks; half of the stages offload, the others are captured: of four microbatches the last two are replayed.
inline bool compare_cuts(const Workload& workload, const record::Recording& recorded,
                         const BatchLayout& batch, std::uint64_t seed) {
  const std::vector<bool> allowed = graph::allowed_cuts(recorded.graph);
  std::vector<int> all, two;
  for (std::size_t cut = 0; cut < allowed.size(); ++cut) {
    if (allowed[cut]) all.push_back(static_cast<int>(cut));
  }
  std::mt19937_64 random(seed);
  std::sample(all.begin(), all.end(), std::back_inserter(two), 2, random);
  const auto plan_of = [&](const std::vector<int>& cuts) {
    return layout::make_manual_plan(recorded.graph, graph::graph_sha256(recorded.graph), cuts,
                                    batch);
  };
  const auto compare = [&](layout::Plan plan) {
    for (layout::Stage& stage : plan.stages) stage.offload = random() % 2 == 0;
    return check_first_step(workload, recorded, plan,
                            {.seed = 3,
                             .num_microbatches = 4,
                             .available_bytes = 1 << 30,
                             .scratch = testing::TempDir()},
                            Logger(LogLevel::kOff));
  };
  layout::Plan regions = plan_of({});
  regions.stages[0].recompute = layout::why_not_recomputed(recorded.graph, regions, 0).empty();
  if (regions.stages[0].recompute) regions.stages[0].regions = all;
  return compare(plan_of(all)) && compare(regions) && (seed % 4 != 0 || compare(plan_of(two)));
}

inline RandomTrial try_random_net(std::uint64_t seed, int num_operations) {
  constexpr BatchLayout kBatch{.global_batch = 2 * random_nets::kMicrobatch,
                               .microbatch = random_nets::kMicrobatch,
                               .lanes = 1};
  const Workload workload = construct(random_nets::make(seed, num_operations), 3);
  std::optional<record::Recording> recorded;
  try {
    recorded =
        record::record(workload.model, BatchReader(workload.training, workload.model).maker(),
                       {.microbatch = random_nets::kMicrobatch});
  } catch (const Error& refusal) {
    return {Fate::kRefused, refusal.message()};
  }
  try {
    const bool is_compared = compare_cuts(workload, *recorded, kBatch, seed);
    return {is_compared ? Fate::kSame : Fate::kNotFinite, ""};
  } catch (const c10::Error& failure) {
    return {Fate::kInvalid, failure.what_without_backtrace()};  // thrown by the plain model alone
  } catch (const std::exception& difference) {
    return {Fate::kDiffers, difference.what()};
  }
}

/// Tries `count` nets from `first_seed` on and expects none to differ, and half of them compared.
inline void try_random_nets(std::uint64_t first_seed, int count) {
  std::map<Fate, int> fates;
  for (int i = 0; i < count; ++i) {
    const std::uint64_t seed = first_seed + static_cast<std::uint64_t>(i);
    const int num_operations = 4 + static_cast<int>(seed % 20);
    const RandomTrial trial = try_random_net(seed, num_operations);
    ++fates[trial.fate];
    EXPECT_TRUE(trial.fate != Fate::kDiffers) << "seed " << seed << ": " << trial.text << "\n"
                                              << random_nets::describe(seed, num_operations);
  }
  std::printf("%d nets from seed %llu on: %d same, %d refused, %d invalid, %d not finite\n", count,
              static_cast<unsigned long long>(first_seed), fates[Fate::kSame],
              fates[Fate::kRefused], fates[Fate::kInvalid], fates[Fate::kNotFinite]);
  EXPECT_GE(2 * fates[Fate::kSame], count) << "too few are compared to say much";
}

}  // namespace trireme::train
