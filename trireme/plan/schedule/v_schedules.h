#pragma once

#include "trireme/plan/schedule/action.h"

namespace trireme::schedule {

/// Two stages on a rank, down the ranks and up again (V shape): stages r and 2p - 1 - r on rank r of p. Every
/// microbatch does the same at the same distances, 6 units after the one before, so that all ranks hold about as much.
/// The first on two ranks, f = i = w = 1, `v_half`:
///
///     rank 0 | 0F0 ... ... ... ... ... ... 3F0 3I0 3W0 ... 0I0 ... ... ... ... 0W0
///     rank 1 | ... ... 1F0 ... ... 2F0 ... ... ... 2I0 1I0 ... 2W0 1W0
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
