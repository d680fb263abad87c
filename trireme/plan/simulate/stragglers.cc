#include "trireme/plan/simulate/stragglers.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "trireme/base/random.h"
#include "trireme/error.h"
#include "trireme/plan/simulate/simulate.h"

namespace trireme::simulate {
namespace {

void check(const Stragglers& stragglers) {
  const auto expect = [](bool holds, const std::string& what, double got) {
    if (holds) return;
    throw Error(ErrorKind::kInvalidArgument,
                "stragglers: " + what + ", got " + std::to_string(got));
  };
  constexpr double kMost = 10;  // Times would differ by a factor of millions.
  expect(stragglers.spread >= 0 && stragglers.spread <= kMost, "spread must be from 0 to 10",
         stragglers.spread);
  expect(stragglers.slow_part >= 0 && stragglers.slow_part <= 1, "slow_part must be from 0 to 1",
         stragglers.slow_part);
  expect(stragglers.slow_factor >= 1 && std::isfinite(stragglers.slow_factor),
         "slow_factor must be at least 1", stragglers.slow_factor);
  expect(stragglers.num_steps >= 1, "num_steps must be at least 1", stragglers.num_steps);
}

/// A number in (0, 1) of 32 random bits.
double uniform(std::uint32_t bits) { return (bits + 0.5) / 4294967296.0; }

double normal(std::uint64_t bits) {
  return normal_pair(static_cast<std::uint32_t>(bits >> 32), static_cast<std::uint32_t>(bits))[0];
}

/// What a rank's work takes in a step.
void draw(const Stragglers& stragglers, std::uint64_t rank_seed, std::vector<Price>& prices) {
  const auto chance = static_cast<std::uint32_t>(stream_seed(rank_seed, {0}));
  const bool is_slow = uniform(chance) < stragglers.slow_part;
  const double rank_factor = is_slow ? stragglers.slow_factor : 1;
  const double spread = stragglers.spread;
  // A reduction starts inside the work that follows, as late as that is long.
  double factor = rank_factor;
  for (std::size_t i = prices.size(); i-- > 0;) {
    if (prices[i].work_us > 0) {
      factor = rank_factor;
      if (spread > 0)
        factor *= std::exp(spread * normal(stream_seed(rank_seed, {1, i})) - spread * spread / 2);
    }
    prices[i].work_us *= factor;
    prices[i].ready_us *= factor;
  }
}

}  // namespace

double StepSpread::mean_us() const {
  return std::accumulate(sorted_us.begin(), sorted_us.end(), 0.0) /
         static_cast<double>(sorted_us.size());
}

double StepSpread::quantile_us(double part) const {
  const auto count = static_cast<double>(sorted_us.size());
  const double below = std::clamp(std::ceil(part * count), 1.0, count);
  return sorted_us[static_cast<std::size_t>(below) - 1];
}

StepSpread play_stragglers(const schedule::StepProgram& program, const Prices& prices,
                           const topology::Topology& topology, const Stragglers& stragglers) {
  check(stragglers);
  StepSpread times;
  for (int step = 0; step < stragglers.num_steps; ++step) {
    Prices drawn = prices;
    for (std::size_t rank = 0; rank < drawn.size(); ++rank) {
      const auto number = static_cast<std::uint64_t>(step);
      draw(stragglers, stream_seed(stragglers.seed, {number, rank}), drawn[rank]);
    }
    times.sorted_us.push_back(simulate(program, drawn, topology).step_us);
  }
  std::ranges::sort(times.sorted_us);
  return times;
}

}  // namespace trireme::simulate
