#pragma once

#include <cstdint>

#include "trireme/kernels/spread.h"

namespace trireme::data {

/// Calls `read` for every index in [0, count), as `spread` has it, and throws what the first of them, in their
/// order, has thrown, however many threads there are; those behind it may then not have been called.
///
/// Errors    those of `read` and of the spread.
/// Threads   `read` is called from several at once. Blocks until all have ended.
void read_each(std::int64_t count, const kernels::Piece& read, const kernels::Spread& spread);

}  // namespace trireme::data
