#pragma once

#include <cstdint>
#include <span>

namespace trireme::vision {

/// A random order of 0 .. n-1 that depends on the seed alone: indices in order of a random number
/// each (Philox, keyed by the seed; equal ones by index), so that any part can be made anywhere
/// without asking who else draws.
///
/// seed     of this call: stream_seed(...).
/// Errors   kInvalidArgument for 2^32 indices or more.
/// Cost     linear on average, since the numbers are even: they are put near their places, then in
///          order; some 12 bytes for each index.
void random_permutation(std::uint64_t seed, std::span<std::int64_t> order);

}  // namespace trireme::vision
