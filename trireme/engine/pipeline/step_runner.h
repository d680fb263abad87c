#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "trireme/engine/pipeline/mailbox.h"
#include "trireme/engine/pipeline/operations.h"
#include "trireme/engine/pipeline/stage_worker.h"

namespace trireme::pipeline {

/// An operation that was run; times since the step's beginning.
struct OperationTime {
  schedule::Operation operation;
  double start_us = 0;
  double duration_us = 0;  ///< Waits included.
  double room_us = 0;      ///< Of it, first: a send waited for room.
};

/// Runs a rank's part of a step program, operation by operation. What is about a microbatch without samples is left out; the
/// others stay in their order, and no rank waits for what another leaves out, since all leave out the same.
///
/// Confined to one thread.
class StepRunner {
 public:
  /// program, operations   outlive the runner.
  /// stages   those that the rank runs, by index in the plan; outlive the runner.
  StepRunner(const schedule::StepProgram& program, int rank, std::map<int, StageWorker*> stages,
             Operations& operations, Mailbox& mailbox);

  /// One step, or one part of an evaluation. Errors carry rank, operation, step and microbatch.
  ///
  /// input   outlives the call.
  void run(const StepInput& input);

  /// The same in two halves: up to the next operation of `kind`, which is not run yet; then the rest.
  void run_to(const StepInput& input, schedule::OperationKind kind);
  void run_rest();

  /// When the last step began, by the clock that the processes of a machine share.
  std::chrono::steady_clock::time_point begin() const { return begin_; }

  /// Processor time of the last step's forwards and backwards: without waits, and without what other
  /// ranks do on the same core meanwhile.
  double compute_seconds() const { return compute_seconds_; }

  /// What the rank did in the last step.
  const std::vector<OperationTime>& times() const { return times_; }

 private:
  using Clock = std::chrono::steady_clock;

  void begin(const StepInput& input);
  void run_next();
  bool is_left_out(const schedule::Operation& operation) const;
  void run(const schedule::Operation& operation);
  void receive(const schedule::Operation& operation);
  void compute(const schedule::Action& action);
  void send(const schedule::Operation& operation);
  ErrorContext place_of(const schedule::Operation& operation) const;
  void note(const schedule::Operation& operation, Clock::time_point begin);

  const schedule::StepProgram& program_;
  int rank_;
  std::map<int, StageWorker*> stages_;
  Operations& operations_;
  Mailbox& mailbox_;
  const StepInput* input_ = nullptr;
  std::size_t next_ = 0;  ///< Of the rank's operations.
  std::vector<OperationTime> times_;
  Clock::time_point begin_;
  double compute_seconds_ = 0;
  double room_us_ = 0;  ///< Of the operation that runs.
};

}  // namespace trireme::pipeline
