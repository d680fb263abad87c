#pragma once

#include <cstdint>
#include <functional>

namespace trireme::kernels {

/// One independent piece of a kernel's work.
using Piece = std::function<void(std::int64_t index)>;

/// How a kernel's pieces are spread over threads: calls `piece` for every index in [0, n), in any
/// order, on any threads, and returns when all have ended. Results never depend on it.
///
/// Errors   the first that a piece throws; others may then not have run.
using Spread = std::function<void(std::int64_t n, const Piece& piece)>;

/// All in the calling thread, in order.
void on_caller(std::int64_t n, const Piece& piece);

/// On the calling thread and others that are made for the call (some 20 us each), which take the
/// next piece when they are done with one.
///
/// num_threads   1 or more, else kInvalidArgument.
/// Errors of a call   kResourceExhausted where a thread cannot be made; pieces may then not have run.
Spread on_threads(int num_threads);

/// `spread` where there is enough to do that threads made for it pay, else the calling thread alone.
///
/// n, least   how many items there are, and how many of them take some 100 us.
const Spread& spread_or_caller(const Spread& spread, std::int64_t n, std::int64_t least);

}  // namespace trireme::kernels
