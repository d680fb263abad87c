#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "trireme/engine/reference/run_record.h"
#include "trireme/engine/train/batch_reader.h"
#include "trireme/engine/train/serial_session.h"
#include "trireme/plan/layout/plan.h"

namespace trireme::train {

/// How the trainings that are compared train.
struct ComparedSteps {
  std::int64_t num_steps = 3;
  std::uint64_t seed = 0;
  OptimizerOptions optimizer;
  Dtype gradient_dtype = Dtype::kF32;            ///< Of `run_serial` and `verify_rank`.
  BatchSizes sizes = BatchSizes::kAnyElseExact;  ///< Of the recordings.
};

/// What ranks are compared with.
struct ReferenceRun {
  reference::RunRecord run;  ///< By the serial executor under the plan.
  std::vector<Comparison> comparisons;
};

/// What is kept of a run, and who is told of its steps.
struct RunWatch {
  reference::Keep keep = reference::Keep::kDigests;
  std::function<void()> after_step = [] {};
};

/// Trains `num_steps` steps; what they leave.
///
/// workload   the session's.
reference::RunRecord record_run(SerialSession& session, const Workload& workload,
                                std::int64_t num_steps, const RunWatch& watch);

/// As a comparison trains: nothing but what `options` says.
TrainingOptions training_of(const ComparedSteps& options);

/// The workload's recording in train mode.
record::Recording record_training(const Workload& workload, std::int64_t microbatch,
                                  BatchSizes sizes);

/// Trains the workload three times from the same weights over the same samples: by the serial
/// executor under `plan`, by the serial executor uncut, and by a plain torch loop around the
/// unmodified model, and compares losses, all gradients, weights and buffers.
///
/// Against `uncut`, everything is the same bits. Against the plain loop too, where there is one
/// lane and rounding_of allows no difference; else first gradients agree to 1e-6 of their norm,
/// losses to 1e-5, weights to 1e-5 of their norm under sgd (adamw magnifies what rounds differently
/// near zero, so its weights are reported only).
///
/// after_step   called after each step of each run; others may wait for this one.
/// Cost         the memory of one training at a time; where bits are not promised, four times the
///              weights more.
ReferenceRun verify_in_one_process(
    const MakeWorkload& make_workload, const layout::Plan& plan, const ComparedSteps& options,
    const std::function<void()>& after_step = [] {});

/// As above, the comparisons: `uncut`, `plain loop`.
std::vector<Comparison> verify(const MakeWorkload& make_workload, const layout::Plan& plan,
                               const ComparedSteps& options);

/// The run by the serial executor under `plan`, for comparisons.
reference::RunRecord run_serial(const MakeWorkload& make_workload, const layout::Plan& plan,
                                const ComparedSteps& options);

}  // namespace trireme::train
