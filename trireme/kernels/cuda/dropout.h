#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>

#include "trireme/error.h"
#include "trireme/kernels/host_device.h"

namespace trireme::kernels::cuda::internal {

/// Dropout with the probability q: p, in [0, 1), rounded to a multiple of 2^-16.
struct Dropout {
  Dropout(const char* operation, double p, std::uint64_t seed)
      : key{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)} {
    if (!(p >= 0 && p < 1)) {
      throw Error(ErrorKind::kInvalidArgument,
                  std::string(operation) + ": expected a probability of dropout in [0, 1), got " +
                      std::to_string(p));
    }
    const double dropped = std::min(std::round(p * 65536), 65535.0);
    threshold = static_cast<std::int32_t>(dropped);
    scale = static_cast<float>(65536 / (65536 - dropped));
  }

  /// Whether what has half v % 2 of word v / 2 is kept.
  TRIREME_HOST_DEVICE bool keeps(const std::array<std::uint32_t, 4>& words, std::int64_t v) const {
    return static_cast<std::int32_t>(words[v / 2] >> (v % 2 * 16) & 0xFFFFU) >= threshold;
  }

  std::array<std::uint32_t, 2> key;  ///< Of Philox.
  std::int32_t threshold = 0;        ///< q * 2^16
  float scale = 1;                   ///< 1 / (1 - q)
};

}  // namespace trireme::kernels::cuda::internal
