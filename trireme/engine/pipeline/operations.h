#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "trireme/plan/schedule/step_program.h"

namespace trireme::pipeline {

/// What a rank does in a step outside its stages and channels, in the program's order.
class Operations {
 public:
  virtual ~Operations() = default;

  /// An operation of a kind that the runner does not run itself: all but kRecv,
  /// kCompute, kSend and those about what microbatches keep.
  virtual void run(const schedule::Operation& operation) = 0;

  /// A forward or backward comes, one that is left out too.
  virtual void begin_action(const schedule::Action& action) = 0;

  /// It is done.
  virtual void end_action(const schedule::Action& action) = 0;

  /// Weight of each loss over the step: of means, and of those that the stage weighs. For backwards.
  virtual const std::vector<double>& totals() const = 0;

  /// Memory that the message of a tie is sent from, or received into.
  virtual std::span<std::byte> tie_memory(const schedule::Channel& channel, int item) = 0;
};

}  // namespace trireme::pipeline
