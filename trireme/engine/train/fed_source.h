#pragma once

#include <cstdint>
#include <span>

#include "trireme/data.h"

namespace trireme::train {

/// Samples that a training loop hands in, step by step: a step may have fewer of them than its batch has places. Those that
/// are missing are the last ones of a replica, as many on each.
class FedSource : public data::Source {
 public:
  /// Whether there is a sample at this place of an order that is as it lies. May block until the step is handed in.
  virtual bool has(data::Sample sample) const = 0;
};

/// kInvalidArgument where replicas had different numbers of samples in a step.
///
/// samples   by replica.
void require_as_many(std::span<const std::uint64_t> samples);

}  // namespace trireme::train
