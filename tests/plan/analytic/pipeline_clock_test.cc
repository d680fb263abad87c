#include "trireme/plan/analytic/pipeline_clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "trireme/plan/schedule/schedules.h"
#include "trireme/plan/simulate/simulate.h"

namespace trireme::analytic {
namespace {

PipelineTimes equal_times(int num_stages) {
  return {std::vector<double>(num_stages, 1), std::vector<double>(num_stages, 2)};
}

topology::Topology ranks_with_own_cores(int num_ranks) {
  topology::Topology topology;
  topology.hosts = {{"host", num_ranks, 1}};
  for (int rank = 0; rank < num_ranks; ++rank) topology.ranks.push_back({0, {rank}, 1});
  return topology;
}

double simulated(const schedule::Schedule& schedule, const PipelineTimes& times) {
  const PricedPipeline priced = pipeline_program(schedule, times);
  const auto num_ranks = static_cast<int>(schedule.ranks.size());
  return simulate::simulate(priced.program, priced.prices, ranks_with_own_cores(num_ranks)).step_us;
}

/// (m + p - 1)(f + b); with v parts a rank (m + (p - 1)/v)(f + b) of its whole work.
TEST(PipelineClock, EqualStagesTakeTheFormulasOfTheBubble) {
  PipelineClocks clocks;
  for (const int p : {1, 2, 3, 4, 8}) {
    for (const int rounds : {1, 2, 5, 40}) {
      const int m = p * rounds;
      for (const char* name : {"simple", "interleaved"}) {
        EXPECT_DOUBLE_EQ(clocks.play({name, p, 1, m}, equal_times(p)).step(), (m + p - 1) * 3.0)
            << name << " " << p << " " << m;
      }
      for (const int v : {2, 3}) {
        if (p == 1) continue;
        EXPECT_DOUBLE_EQ(clocks.play({"interleaved", p, v, m}, equal_times(p * v)).step(),
                         m * v * 3.0 + (p - 1) * 3.0)
            << p << " " << v << " " << m;
      }
    }
  }
}

/// f = i = w: m(f + i + w) + (p - 1)(f + i - w), a third of 1F1B's bubble.
TEST(PipelineClock, ZeroBubbleLeavesAThirdOfTheBubble) {
  PipelineClocks clocks;
  for (const int p : {2, 4, 8}) {
    for (const int m : {p, 3 * p, 30 * p}) {
      EXPECT_DOUBLE_EQ(clocks.play({"zero_bubble", p, 1, m}, equal_times(p)).step(),
                       m * 3.0 + (p - 1) * 1.0);
    }
  }
}

/// Stages that differ, messages that block or not, every schedule.
TEST(PipelineClock, EqualsTheSimulator) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> time(0.5, 2);
  for (int trial = 0; trial < 120; ++trial) {
    const char* name = std::array{"simple", "interleaved", "zero_bubble"}[trial % 3];
    const int p = 1 + static_cast<int>(random() % 5);
    const int v = p > 1 ? 1 + static_cast<int>(random() % 3) : 1;
    const int m = p * (1 + static_cast<int>(random() % 4));
    PipelineTimes times;
    for (int stage = 0; stage < p * v; ++stage) {
      times.forward.push_back(time(random));
      times.backward.push_back(2 * time(random));
    }
    times.hop = trial % 4 == 0 ? 0 : 0.2 * time(random);
    times.hop_blocks = trial % 2 == 0;
    const schedule::Schedule schedule = schedule::make_schedule(name, p * v, m, v);
    EXPECT_NEAR(PipelineClock(schedule).play(times).step(), simulated(schedule, times), 1e-9)
        << name << " p " << p << " v " << v << " m " << m << " trial " << trial;
  }
}

/// What is played of a long step, and continued, is what the simulator says of the whole: stages alike
/// but for the last, which has the head.
TEST(PipelineClock, LongStepsContinueAsTheyAreSimulated) {
  PipelineClocks clocks;
  for (const int p : {2, 4}) {
    for (const int v : {1, 2}) {
      for (const bool blocks : {false, true}) {
        const int m = 16 * p + (v == 1 ? 1 : 0);
        PipelineTimes times = equal_times(p * v);
        times.forward.back() += 0.4;
        times.backward.back() += 0.7;
        times.hop = 0.1;
        times.hop_blocks = blocks;
        const schedule::Schedule schedule = schedule::make_interleaved(p * v, m, v);
        EXPECT_NEAR(clocks.play({"interleaved", p, v, m}, times).step(), simulated(schedule, times),
                    1e-9)
            << p << " " << v << " " << blocks;
      }
    }
  }
}

/// Stages of any lengths, up to four times as long as one another: what is continued is within a hundredth.
TEST(PipelineClock, LongStepsOfUnevenStagesContinueNearly) {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> time(0.5, 2);
  PipelineClocks clocks;
  double worst = 0;
  for (int trial = 0; trial < 90; ++trial) {
    const char* name = std::array{"simple", "interleaved", "zero_bubble"}[trial % 3];
    const int p = 2 + static_cast<int>(random() % 4), v = 1 + static_cast<int>(random() % 2);
    const int m = p * (8 + static_cast<int>(random() % 32));
    PipelineTimes times{{}, {}, 0.1 * time(random), trial % 2 == 0};
    for (int stage = 0; stage < p * v; ++stage) {
      times.forward.push_back(time(random));
      times.backward.push_back(2 * time(random));
    }
    const double exact = simulated(schedule::make_schedule(name, p * v, m, v), times);
    worst = std::max(worst, std::abs(clocks.play({name, p, v, m}, times).step() / exact - 1));
  }
  EXPECT_LT(worst, 0.01);
}

TEST(PipelineClock, HoldsAsManyMicrobatchesAsTheSchedule) {
  PipelineClocks clocks;
  const std::vector<double> one(4, 1);
  EXPECT_EQ(clocks.most_held({"simple", 4, 1, 40}, one), (std::vector<double>{40, 40, 40, 40}));
  EXPECT_EQ(clocks.most_held({"interleaved", 4, 1, 40}, one), (std::vector<double>{4, 3, 2, 1}));
  EXPECT_EQ(clocks.most_held({"interleaved", 4, 1, 2}, one), (std::vector<double>{2, 2, 2, 1}));
  // min(mv, 2(p - r - 1) + (v - 1)p + 1) parts of rank r.
  EXPECT_EQ(clocks.most_held({"interleaved", 4, 2, 40}, std::vector<double>(8, 1)),
            (std::vector<double>{11, 9, 7, 5}));
}

}  // namespace
}  // namespace trireme::analytic
