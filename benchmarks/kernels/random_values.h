#pragma once

#include <cstdint>
#include <span>

namespace trireme::kernels::bench {

/// Normal numbers that depend on the seed alone.
void fill_normal(std::span<float> values, std::uint64_t seed, float scale = 1);

/// Even numbers of [low, high), likewise.
void fill_even(std::span<float> values, std::uint64_t seed, float low, float high);

}  // namespace trireme::kernels::bench
