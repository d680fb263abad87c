#pragma once

#include <cstdint>
#include <string>

#include "trireme/engine/train/batch_reader.h"

namespace trireme::random_nets {

/// Samples of a microbatch.
inline constexpr std::int64_t kMicrobatch = 2;

/// A module with a forward made of `num_operations` operations that a seeded generator picks: writes
/// in place, views, factories, gradient modes, random numbers, buffers, parameters that are shared,
/// frozen or toggled. Some are no valid torch programs: their backward throws.
///
/// The same for the same seed, in every call of forward and at every batch size.
MakeWorkload make(std::uint64_t seed, int num_operations);

/// The operations of `make`, a line each.
std::string describe(std::uint64_t seed, int num_operations);

}  // namespace trireme::random_nets
