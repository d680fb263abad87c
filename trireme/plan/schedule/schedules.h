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
/// With several stages on a rank (s mod p, for p ranks) it runs one after another, all microbatches of each: the
/// breadth-first pipeline.
///
/// Memory   every stage holds the activations of all m microbatches.
/// Time     (m + p - 1)(f + b) with p equal stages; with v on each of p ranks, (m + (p - 1) / v)(f + b) of a rank's
///          whole part, m >= p.
///
/// num_stages, num_microbatches   at least 1, num_stages a multiple of `stages_per_rank`; else kInvalidArgument.
/// Source   Lamy-Poirier, Breadth-First Pipeline Parallelism, MLSys 2023 (arXiv 2211.05953); Huang et al., GPipe, NeurIPS 2019 (arXiv 1811.06965), section 2.3; there the backwards
///          come in the opposite order. Ours is the order of the lane fold.
Schedule make_simple(int num_stages, int num_microbatches, int stages_per_rank = 1);

/// One forward, one backward (1F1B): a rank prefers a backward whenever one can be ready.
///
/// Rank s first runs as many forwards as there are stages after it (warm-up), then alternates, then
/// drains. Two stages and four microbatches, a backward drawn twice as wide as a forward:
///
///     rank 0 | F0 F1 .. .. B0--- F2 B1--- F3 B2--- .. B3---
///     rank 1 | .. F0 B0--- F1 B1--- F2 B2--- F3 B3--- .. ..
///
/// With v > 1 stages on a rank (s mod p, for p ranks) it goes round its stages, p microbatches of each: Megatron's
/// interleaved schedule. Rank r runs 2 (p - r - 1) + (v - 1) p forwards first. Where p does not divide m, rounds are a
/// little longer.
///
/// Memory   stage s holds the activations of at most min(m, p - s) microbatches; `make_simple`,
///          of all m. With v > 1, rank r of at most min(mv, 2 (p - r - 1) + (v - 1) p + 1) of its stages. Where
///          `active_microbatches` is not 0, at most v times that, by fewer forwards before the first backward; the
///          (v - 1) p that must come are not left out.
/// Time     (m + p - 1)(f + b) with p equal stages, the same as `make_simple`; with v > 1 and m a multiple of p,
///          (m + (p - 1) / v)(f + b) of a rank's whole part. Longer where fewer are active than that holds.
///
/// num_stages, num_microbatches   as for `make_simple`.
/// Source   PipeDream-Flush: Narayanan et al., ICML 2021, section 3.2 (arXiv 2006.09503); v > 1: the same, SC 2021,
///          section 2.2 (arXiv 2104.04473).
Schedule make_interleaved(int num_stages, int num_microbatches, int stages_per_rank = 1,
                          int active_microbatches = 0);

/// 1F1B whose backwards are split: the gradient of inputs (I), which the stage before waits for, and that of weights
/// (W), which fills the time in which 1F1B waits.
///
/// Rank r runs the forwards and Is of `make_interleaved`, and its Ws r behind its Is. Two stages and four
/// microbatches:
///
///     rank 0 | F0 F1 .. I0 W0 F2 I1 W1 F3 I2 W2 I3 W3
///     rank 1 | .. F0 I0 F1 I1 W0 F2 I2 W1 F3 I3 W2 W3
///
/// Memory   every stage holds the activations of at most min(m, p) microbatches, as the first of `make_interleaved`,
///          and of those between I and W, r + 1 of them, what their Ws need besides.
/// Time     m (f + i + w) + (p - 1)(i + max(0, f - w)) with p equal stages and m >= p.
///
/// num_stages, num_microbatches   as for `make_simple`; active_microbatches as for `make_interleaved`, whose Ws come earlier too.
/// Source   ZB-H1: Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024 (arXiv 2401.10241), section 2.
Schedule make_zero_bubble(int num_stages, int num_microbatches, int stages_per_rank = 1,
                          int active_microbatches = 0);

/// The same with twice as many forwards before a rank's first I, and Ws twice as far behind Is: waits for a microbatch that
/// takes longer than others are spared, as is i + w - f of the first one, for activations of more microbatches.
///
///     rank 0 | F0 F1 F2 I0 W0 F3 I1 W1 I2 W2 I3 W3
///     rank 1 | .. F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3
///
/// Of one stage a rank: with several, forwards further ahead may wait for backwards.
///
/// Memory   every stage holds the activations of at most min(m, 2p - 1) microbatches.
/// Time     m (f + i + w) + (p - 1) f, the least that there is, with p equal stages and m >= 2p.
///
/// num_stages, num_microbatches, active_microbatches   as for `make_zero_bubble`.
/// Source   ZB-H2 of the same, but that all ranks end a step together.
Schedule make_zero_bubble_h2(int num_stages, int num_microbatches, int active_microbatches = 0);

/// The parameter that all schedules have: the most microbatches whose activations a rank holds at once, from F until B or
/// W, of all its stages together as if each were whole. At least 1.
inline constexpr std::string_view kActiveMicrobatches = "active_microbatches";

/// The schedule `name` for stages on `num_stages / stages_per_rank` ranks: `simple`, `interleaved`, `zero_bubble`,
/// with one stage a rank `zero_bubble_h2`, with two `v_half` or `v_min` (v_schedules.h).
///
/// Errors   kInvalidArgument where there is no such schedule, listing the known ones, or where it
///          cannot have these numbers.
Schedule make_schedule(std::string_view name, int num_stages, int num_microbatches,
                       int stages_per_rank = 1);

/// The same with the parameters of `choice`, whose name is not `custom`.
///
/// Errors   also kInvalidArgument where it has no such parameter, or holds more microbatches than are to be active,
///          saying how many it needs.
Schedule make_schedule(const layout::ScheduleChoice& choice, int num_stages, int num_microbatches,
                       int stages_per_rank = 1);

/// Most microbatches whose activations a rank holds at once, as kActiveMicrobatches counts them, rounded up.
///
/// schedule   as many stages on each rank.
int most_active(const Schedule& schedule);

/// The least stages on a rank that the schedule `name` can have; 1 for an empty name. Errors as above.
int least_stages_per_rank(std::string_view name);

/// Puts each stage of a plan where its schedule runs it, so many on each rank of a pipeline that becomes as long as
/// that takes. Replicas are to be placed anew (layout::set_replicas).
///
/// Errors   as above.
void deal_out_stages(layout::Plan& plan, int stages_per_rank);

/// Gives a plan a schedule of its own, and its stages their places.
///
/// Errors   those of `check`; kInvalidArgument where it is of other numbers of stages or microbatches.
void set_schedule(layout::Plan& plan, const Schedule& schedule);

/// The schedule of a plan: as above, or for the name `custom` the actions that the plan has.
///
/// Errors   also kInvalidArgument where the plan's stages stand at other positions than the schedule says, where the name
///          `custom` has parameters, and those of `check` for actions of the plan's own.
Schedule schedule_of(const layout::Plan& plan);

/// Forwards alone, of an evaluation: each rank goes round its stages, `round` microbatches of each.
/// No schedule of a training; `check` refuses it.
///
/// positions   by stage, the rank that runs it.
Schedule forwards(const std::vector<int>& positions, int num_microbatches, int round);

/// Whether some backward is split, so that weights need not wait for nor be waited for.
bool splits_backwards(const Schedule& schedule);

/// The names that `make_schedule` knows for so many stages on a rank; all, for 0.
std::vector<std::string> schedule_names(int stages_per_rank = 1);

}  // namespace trireme::schedule
