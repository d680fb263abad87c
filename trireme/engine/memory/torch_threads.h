#pragma once

#include <cstdint>

#include "trireme/kernels/spread.h"

namespace trireme::memory {

/// A kernels::Spread: pieces run on torch's own threads, as many as at::get_num_threads() says, neighbours on one thread. On the
/// calling thread alone where there is one piece, one thread, or where it is one of torch's that works for another call.
///
/// Errors   the first that a piece throws; others run to their end.
void on_torch_threads(std::int64_t n, const kernels::Piece& piece);

}  // namespace trireme::memory
