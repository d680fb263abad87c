#pragma once

#include <cstdint>
#include <vector>

#include "trireme/session.h"
#include "trireme/wire/collectives/world.h"

namespace trireme::session {

/// What the steps of a rank took.
class StepTimes {
 public:
  void add(const StepReport& report);
  bool empty() const { return seconds_.empty(); }

  /// Of the steps of all ranks. Every rank calls it; lists are by rank.
  ///
  /// data_bytes                  live tensors that are samples, not the model's.
  /// predicted_compute_seconds   of a step, all ranks together; 0 where it is not known.
  Measured measure(const collectives::World& world, std::int64_t data_bytes,
                   double predicted_compute_seconds) const;

 private:
  std::vector<double> seconds_;  ///< Of each step.
  double wait_seconds_ = 0;      ///< Of all of them.
  double compute_seconds_ = 0;   ///< Likewise.
};

}  // namespace trireme::session
