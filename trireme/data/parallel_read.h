#pragma once

#include <cstddef>
#include <span>

#include "trireme/data.h"
#include "trireme/kernels/spread.h"

namespace trireme::data {

/// Reads samples, as Source::read does, on several threads.
///
/// destinations   one for each field of the source: all samples' bytes of it, one sample after the
///                other, [num samples, ...shape] in C order. Written.
/// spread         over which threads: kernels::on_threads(n), or on_caller. What is read does not
///                depend on it.
/// Errors         kInvalidArgument where a destination does not fit, before anything is read; else that
///                of the first sample, in their order, that cannot be read, however many threads there
///                are; destinations then hold anything. Those of the spread.
/// Threads        the source is called from several at once. Blocks until all have ended.
void read_samples(const Source& source, std::span<const Sample> samples,
                  std::span<const std::span<std::byte>> destinations,
                  const kernels::Spread& spread);

}  // namespace trireme::data
