#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trireme/plan.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/simulate/forecast.h"

namespace trireme::partition {

/// What is asked of `partition`.
struct PartitionOptions {
  // What decides results and what is given.
  BatchLayout batch;
  int replicas = 1;
  bool may_replicate = true;  ///< Whether `replicas` of 0 may become several.
  bool may_copy = true;  ///< Whether nodes with parameters may run once per consumer: other bits.
  /// Exactly these, as the run had that goes on; not set: as `may_copy` says.
  std::optional<std::vector<graph::NodeId>> copied_nodes;
  std::vector<int>
      cuts;  ///< Stages must begin at these positions of the recorded graph; ascending.

  // What decides speed and memory.
  Objective objective = Objective::kSpeed;
  bool may_choose_owners = true;  ///< Of shared parameters; else the first stage that uses one.
  int stages = 0;                 ///< 0: all ranks of the topology over `replicas`, or fewer:
  bool may_idle = false;  ///< whether ranks may be left without a stage where that is faster.
  std::string schedule;   ///< Empty: the best of all.
  std::int64_t device_memory_bytes = 0;  ///< Of each rank; 0: what the topology says.
  double max_slowdown = 1.25;            ///< Of kMemory: against the fastest plan.
  double fastest_us = 0;                 ///< Its step, where it is known; 0: with these options.
  simulate::ForecastOptions forecast;    ///< State per element, norm clipping.
};

}  // namespace trireme::partition
