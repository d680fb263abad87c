#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "trireme/engine/measure/link_measure.h"
#include "trireme/engine/measure/measurement.h"
#include "trireme/engine/program/stage_captures.h"
#include "trireme/plan/profile/profile.h"

namespace trireme::measure {

/// Updates a parameter in place, keeping its state from call to call. Flat f32 tensors.
using UpdateFunction = std::function<void(const at::Tensor& value, const at::Tensor& gradient)>;

/// What a rank does outside stages, per element or byte: an update by `update`, the fold of a
/// gradient into a lane (kernels::fold), a copy of a boundary value. As in a step, what was just
/// computed is near and what it is added or copied to is not: gradients of 4 MiB and values of 1 MiB
/// go to 64 MiB that are walked through, an update is of 4 Mi elements.
///
/// Times are medians over `ranks`, all busy with the same. Memory: 100 MiB and the update's state.
profile::StepCosts measure_step(const UpdateFunction& update, const RepeatOptions& options,
                                const BusyRanks& ranks);

/// What it takes to write a tensor of 64 MiB to a file in `folder`, and to read it into new memory, per byte. Unlike
/// other times with waits, while all ranks do it: for the disk, and for the system, which provides pages of its cache.
/// Errors   those of program::OffloadedTensors.
profile::FileCosts measure_files(const std::filesystem::path& folder, const RepeatOptions& options,
                                 const BusyRanks& ranks);

/// Processor time of `read`, which reads the samples of a microbatch, others in each call: the median over calls, then over ranks,
/// which read at the same time. Microseconds.
double measure_reading(const std::function<void()>& read, const RepeatOptions& options,
                       const BusyRanks& ranks);

struct ProfileOptions {
  UpdateFunction update;  ///< The optimizer's; required.
  RepeatOptions nodes;
  RepeatOptions ranges = {.min_repeats = 5,  ///< Of each of five visits.
                          .max_repeats = 50,
                          .min_time = std::chrono::milliseconds(250),
                          .max_time = std::chrono::seconds(5)};
  RepeatOptions held = {.min_repeats = 5,
                        .max_repeats = 50,
                        .min_time = std::chrono::milliseconds(200),
                        .max_time = std::chrono::seconds(5)};
  LinkOptions links;
  program::Capture capture = program::Capture::kOn;  ///< As in the training that is planned.
  std::filesystem::path offload_folder = {};         ///< Files there are measured; empty: none are.
};

/// The same with so few repeats that times are no more than of some size: where what is measured counts, not how fast it is.
ProfileOptions with_few_repeats(ProfileOptions options);

/// Measures all of a profile: nodes, the two ranges that `middle_cut` parts (one where no cut is
/// allowed; in five visits, of which the middle one counts), how much longer they take beside held
/// activations and where they are not captured, what a step does outside stages, and links. It has passed profile::check and is the same on all ranks, byte for byte.
///
/// endpoint   of the world that the subject's ranks are all of; null where there is one rank.
/// Errors     kInvalidArgument where `update` is missing; those of the parts.
profile::Profile measure_profile(const Subject& subject, transport::Endpoint* endpoint,
                                 const ProfileOptions& options);

/// How much slower the machine is than it was, as a factor: 1 is no drift.
struct RangeDrift {
  double forward = 1;
  double backward = 1;
};

/// Measures the ranges of `then` again, captured where they were, and divides: for each, now / then. The same on all ranks.
std::vector<RangeDrift> drift(const profile::Profile& then, const Subject& subject,
                              const RepeatOptions& options);

}  // namespace trireme::measure
