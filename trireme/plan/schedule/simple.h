#pragma once

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

}  // namespace trireme::schedule
