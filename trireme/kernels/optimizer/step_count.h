#pragma once

#include <cstdint>
#include <string>

#include "trireme/error.h"

namespace trireme::kernels::internal {

/// kInvalidArgument, which names the optimizer, for a step below 1.
inline void check_step(const std::string& optimizer, std::int64_t step) {
  if (step >= 1) return;
  throw Error(ErrorKind::kInvalidArgument,
              optimizer + " counts steps from 1, got " + std::to_string(step));
}

}  // namespace trireme::kernels::internal
