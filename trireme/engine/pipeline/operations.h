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

  /// An operation of a kind that the runner does not run itself: all but kRecv, kCompute, kSend and
  /// kWeigh.
  virtual void run(const schedule::Operation& operation) = 0;

  /// Weight of each loss over the step, of all replicas (StepInput::totals).
  virtual std::vector<double> weigh() = 0;

  /// A microbatch's backward is done. microbatch   of the replica.
  virtual void end_backward(int microbatch) = 0;

  /// Memory that the message of a tie is sent from, or received into.
  virtual std::span<std::byte> tie_memory(const schedule::Channel& channel, int item) = 0;
};

}  // namespace trireme::pipeline
