#pragma once

#include <cstddef>
#include <span>

#include "trireme/plan/schedule/step_program.h"

namespace trireme::pipeline {

/// What a rank does in a step outside its stages and channels: one call per operation of its
/// program, in the program's order. Filled by train.
class Operations {
 public:
  virtual ~Operations() = default;

  /// A microbatch's backward is done. microbatch   of the replica.
  virtual void end_backward(int microbatch) = 0;

  /// The action that comes next completes the stage's gradients: the sum of this bucket starts
  /// inside it, as soon as it and those of earlier calls are complete.
  virtual void reduce(int bucket) = 0;

  /// Waits for that sum.
  virtual void join(int bucket) = 0;
  virtual void exchange() = 0;

  /// kWeigh, kTieSum, kCommit, kNorm and kUpdate.
  virtual void run(schedule::OperationKind kind) = 0;

  /// Memory that the message of a tie is sent from, or received into.
  virtual std::span<std::byte> tie_memory(const schedule::Channel& channel, int item) = 0;
};

}  // namespace trireme::pipeline
