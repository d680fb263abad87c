#pragma once

#include "trireme/plan/schedule/action.h"

namespace trireme::schedule {

/// Two stages on a rank, down the ranks and up again (V shape): stages r and 2p - 1 - r on rank r of p. A rank waits
/// for no other while the first microbatch goes down and up, and all ranks hold about as much.
///
/// Every microbatch does the same at the same distances, one after another. Two ranks, f = i = w = 1, the first:
///
///     rank 0 | 0F0 .. .. .. .. .. 3F0 3I0 .. 3W0 0I0 0W0         `v_half`
///     rank 1 | .. .. 1F0 .. .. 2F0 ...
///
/// Memory   in units of a rank's two stages, from F until W: `v_half` holds at most p / 2 + 1, `v_min` (p + 4) / 3
///          microbatches, where `make_interleaved` of half as many stages holds p.
/// Time     with f = i = w about half and two thirds of the waits of that; the orders are made for equal times.
///
/// num_stages   even, at least 2; num_microbatches at least 1; else kInvalidArgument.
/// Source   V-Half and V-Min: Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS 2024
///          (arXiv 2405.15362), section 3; the distances found anew by search.
Schedule make_v_half(int num_stages, int num_microbatches);
Schedule make_v_min(int num_stages, int num_microbatches);

}  // namespace trireme::schedule
