#pragma once

#include <cstdint>
#include <vector>

#include "trireme/plan/schedule/step_program.h"
#include "trireme/plan/simulate/prices.h"
#include "trireme/plan/topology/topology.h"

namespace trireme::simulate {

/// How much longer than their price ranks take now and then. Steps and ranks are independent of each other.
struct Stragglers {
  /// Of each work of a rank: it takes exp(spread z - spread^2 / 2) as long, z normal; as long as its price in the mean.
  double spread = 0;
  double slow_part =
      0;  ///< Of ranks that are slow in a step: all their work takes `slow_factor` as long. 0 to 1.
  double slow_factor = 1;  ///< At least 1.
  int num_steps = 100;     ///< That are played.
  std::uint64_t seed = 0;
};

/// How long steps took.
struct StepSpread {
  std::vector<double> sorted_us;

  double mean_us() const;
  double quantile_us(
      double part) const;  ///< That so many of the steps do not exceed; part from 0 to 1.
};

/// Plays a step again and again. Whoever is late makes others wait: a step takes more than the mean of its ranks, the more
/// ranks there are.
///
/// program, prices, topology   as for `simulate`, of all ranks: with times of their own no replicas are alike.
/// Errors   kInvalidArgument where a number is not in its range; those of `simulate`.
/// Cost     num_steps x that of `simulate`. The same seed gives the same times.
StepSpread play_stragglers(const schedule::StepProgram& program, const Prices& prices,
                           const topology::Topology& topology, const Stragglers& stragglers);

}  // namespace trireme::simulate
