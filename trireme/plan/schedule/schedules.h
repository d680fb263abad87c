#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trireme/plan/layout/plan.h"
#include "trireme/plan/schedule/action.h"

namespace trireme::schedule {

/// All forwards, then all backwards (GPipe), both in microbatch order. Two stages and three
/// microbatches, a backward drawn twice as wide as a forward:
///
///     rank 0 | F0 F1 F2 .. .. .. B0--- B1--- B2---
///     rank 1 | .. F0 F1 F2 B0--- B1--- B2--- .. ..
///
/// Memory   every stage holds the activations of all m microbatches.
/// Time     (m + p - 1)(f + b) with p equal stages.
///
/// num_stages, num_microbatches   at least 1, else kInvalidArgument.
/// Source   Huang et al., GPipe, NeurIPS 2019 (arXiv 1811.06965), section 2.3; there the backwards
///          come in the opposite order. Ours is the order of the lane fold.
Schedule make_simple(int num_stages, int num_microbatches);

/// One forward, one backward (1F1B): a rank prefers a backward whenever one can be ready.
///
/// Rank s first runs as many forwards as there are stages after it (warm-up), then alternates, then
/// drains. Two stages and four microbatches, a backward drawn twice as wide as a forward:
///
///     rank 0 | F0 F1 .. .. B0--- F2 B1--- F3 B2--- .. B3---
///     rank 1 | .. F0 B0--- F1 B1--- F2 B2--- F3 B3--- .. ..
///
/// Memory   stage s holds the activations of at most min(m, p - s) microbatches; `make_simple`,
///          of all m.
/// Time     (m + p - 1)(f + b) with p equal stages, the same as `make_simple`.
///
/// num_stages, num_microbatches   at least 1, else kInvalidArgument.
/// Source   PipeDream-Flush: Narayanan et al., ICML 2021, section 3.2 (arXiv 2006.09503).
Schedule make_interleaved(int num_stages, int num_microbatches);

/// 1F1B whose backwards are split: the gradient of inputs (I), which the stage before waits for, and that of weights
/// (W), which fills the time in which 1F1B waits.
///
/// Stage s runs the forwards and Is of `make_interleaved`, and its Ws s microbatches behind its Is. Two stages and four
/// microbatches:
///
///     rank 0 | F0 F1 .. I0 W0 F2 I1 W1 F3 I2 W2 I3 W3
///     rank 1 | .. F0 I0 F1 I1 W0 F2 I2 W1 F3 I3 W2 W3
///
/// Memory   every stage holds the activations of at most min(m, p) microbatches, as the first of `make_interleaved`,
///          and of those between I and W, s + 1 of them, what their Ws need besides.
/// Time     m (f + i + w) + (p - 1)(i + max(0, f - w)) with p equal stages and m >= p.
///
/// num_stages, num_microbatches   at least 1, else kInvalidArgument.
/// Source   ZB-H1: Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024 (arXiv 2401.10241), section 2.
Schedule make_zero_bubble(int num_stages, int num_microbatches);

/// The schedule `name` of a plan: `simple`, `interleaved` or `zero_bubble`.
///
/// Errors   kInvalidArgument where there is no such schedule, listing the known ones, or where it
///          cannot have these numbers.
Schedule make_schedule(std::string_view name, int num_stages, int num_microbatches);

/// As above for a plan's choice; also refuses parameters, which no schedule has so far.
Schedule make_schedule(const layout::ScheduleChoice& choice, int num_stages, int num_microbatches);

/// Forwards alone, in order: of an evaluation. No schedule of a training; `check` refuses it.
Schedule forwards(int num_stages, int num_microbatches);

/// Whether the schedule `name` splits backwards, so that weights need not wait for nor be waited for. Errors as
/// make_schedule.
bool splits_backwards(std::string_view name);

/// The names that `make_schedule` knows.
std::vector<std::string> schedule_names();

}  // namespace trireme::schedule
