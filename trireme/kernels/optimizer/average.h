#pragma once

#include <cstdint>

#include "trireme/kernels/spread.h"

namespace trireme::kernels {

/// One step of an exponential moving average: average = decay average + (1 - decay) value, each operation rounded to
/// the arrays' type, the constants once.
///
/// value     [n], left as it is.
/// average   [n], updated. No overlap.
/// spread    threads share the elements; they change nothing.
/// Cost      12 bytes read or written for each element of f32.
void move_average(double decay, const float* value, float* average, std::int64_t n,
                  const Spread& spread = on_caller);
void move_average(double decay, const double* value, double* average, std::int64_t n,
                  const Spread& spread = on_caller);

}  // namespace trireme::kernels
