#pragma once

#include "trireme/plan/schedule/action.h"

namespace trireme::schedule {

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

}  // namespace trireme::schedule
