#include "trireme/engine/pipeline/step_runner.h"

#include <utility>

#include "trireme/engine/memory/process_threads.h"
#include "trireme/engine/pipeline/message.h"
#include "trireme/engine/program/torch_failure.h"
#include "trireme/error.h"

namespace trireme::pipeline {

using schedule::ActionKind;
using schedule::ChannelKind;
using schedule::Operation;
using schedule::OperationKind;

namespace {

using Microseconds = std::chrono::duration<double, std::micro>;

/// That the operation is about; below 0: none.
int microbatch_of(const Operation& operation) {
  const bool is_action = schedule::row_of(operation.kind).operand == schedule::OperandKind::kAction;
  return is_action ? operation.action.microbatch : operation.microbatch;
}

}  // namespace

StepRunner::StepRunner(const schedule::StepProgram& program, int rank,
                       std::map<int, StageWorker*> stages, Operations& operations, Mailbox& mailbox)
    : program_(program),
      rank_(rank),
      stages_(std::move(stages)),
      operations_(operations),
      mailbox_(mailbox) {}

void StepRunner::run(const StepInput& input) {
  begin(input);
  run_rest();
}

void StepRunner::run_to(const StepInput& input, OperationKind kind) {
  begin(input);
  const auto& operations = program_.ranks[rank_];
  while (next_ < operations.size() && operations[next_].kind != kind) run_next();
}

void StepRunner::run_rest() {
  while (next_ < program_.ranks[rank_].size()) run_next();
  mailbox_.flush(
      {.rank = rank_, .operation = "end of step" + input_->purpose, .step = input_->step});
}

void StepRunner::begin(const StepInput& input) {
  input_ = &input;
  next_ = 0;
  times_.clear();
  compute_seconds_ = 0;
  begin_ = Clock::now();
  for (const auto& [stage, worker] : stages_) worker->begin_step(input);
  mailbox_.begin_step([&](int microbatch) { return microbatch < 0 || input.has(microbatch); });
}

bool StepRunner::is_left_out(const Operation& operation) const {
  const int microbatch = microbatch_of(operation);
  return microbatch >= 0 && !input_->has(microbatch);
}

void StepRunner::run_next() {
  const Operation& operation = program_.ranks[rank_][next_++];
  if (is_left_out(operation)) {
    // Lanes end all the same.
    if (operation.kind == OperationKind::kCompute) {
      operations_.begin_action(operation.action);
      operations_.end_action(operation.action);
    }
    return;
  }
  const auto begin = Clock::now();
  room_us_ = 0;
  mailbox_.drop_received();
  try {
    run(operation);
  } catch (const std::exception& failure) {
    throw program::error_of(failure).add(place_of(operation));
  }
  note(operation, begin);
}

void StepRunner::run(const Operation& operation) {
  switch (operation.kind) {
    case OperationKind::kRecv:
      return receive(operation);
    case OperationKind::kCompute: {
      const auto begin = memory::compute_time();
      compute(operation.action);
      compute_seconds_ += (memory::compute_time() - begin).count();
      return;
    }
    case OperationKind::kSend:
      return send(operation);
    case OperationKind::kOffload:
      return stages_.at(operation.action.stage)->offload(operation.action.microbatch);
    case OperationKind::kPrefetch:
      return stages_.at(operation.action.stage)->prefetch(operation.action.microbatch);
    case OperationKind::kFetch:
      return stages_.at(operation.action.stage)->fetch(operation.action.microbatch);
    default:
      return operations_.run(operation);
  }
}

void StepRunner::receive(const Operation& operation) {
  const schedule::Channel& channel = program_.channels[operation.channel];
  const ErrorContext place = place_of(operation);
  switch (channel.kind) {
    case ChannelKind::kValue:
      return stages_.at(channel.to_stage)
          ->put_value(operation.microbatch, operation.item,
                      unpack(mailbox_.take(operation.channel, place)));
    case ChannelKind::kGradient:
      return stages_.at(channel.to_stage)
          ->put_gradient(operation.microbatch, operation.item,
                         unpack(mailbox_.take(operation.channel, place)));
    default:
      return mailbox_.take_into(operation.channel, operations_.tie_memory(channel, operation.item),
                                place);
  }
}

void StepRunner::compute(const schedule::Action& action) {
  StageWorker& stage = *stages_.at(action.stage);
  operations_.begin_action(action);
  switch (action.kind) {
    case ActionKind::kForward:
      stage.forward(action.microbatch);
      break;
    case ActionKind::kBackward:
      stage.backward(action.microbatch, operations_.totals());
      break;
    case ActionKind::kBackwardInput:
      stage.backward_inputs(action.microbatch, operations_.totals());
      break;
    case ActionKind::kBackwardWeight:
      stage.backward_weights(action.microbatch);
      break;
  }
  operations_.end_action(action);
}

void StepRunner::send(const Operation& operation) {
  const schedule::Channel& channel = program_.channels[operation.channel];
  if (channel.limit > 0) {
    const auto begin = Clock::now();
    mailbox_.make_room(operation.channel, channel.limit, place_of(operation));
    room_us_ = Microseconds(Clock::now() - begin).count();
  }
  switch (channel.kind) {
    case ChannelKind::kValue:
      return mailbox_.send(
          operation.channel,
          pack(stages_.at(channel.from_stage)->value(operation.microbatch, operation.item)));
    case ChannelKind::kGradient:
      return mailbox_.send(
          operation.channel,
          pack(
              stages_.at(channel.from_stage)->take_gradient(operation.microbatch, operation.item)));
    default:
      return mailbox_.send_from(operation.channel, operations_.tie_memory(channel, operation.item));
  }
}

ErrorContext StepRunner::place_of(const Operation& operation) const {
  const int microbatch = microbatch_of(operation);
  ErrorContext place{.rank = rank_,
                     .operation = schedule::to_text(program_, operation) + input_->purpose,
                     .step = input_->step};
  if (microbatch >= 0) place.microbatch = input_->index_of(microbatch);
  return place;
}

void StepRunner::note(const Operation& operation, Clock::time_point begin) {
  const auto end = Clock::now();
  const double start_us = Microseconds(begin - begin_).count();
  const double duration_us = Microseconds(end - begin).count();
  times_.push_back({operation, start_us, duration_us, room_us_});
}

}  // namespace trireme::pipeline
