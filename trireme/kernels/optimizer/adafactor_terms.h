#pragma once

#include <cstdint>

namespace trireme::kernels::internal {

struct AdafactorLoops {
  /// Adds g^2 to the columns' sums, which go on to a multiple of 16; returns the sum of the row.
  double (*add_row)(const float* gradient, double* column_sums, std::int64_t n);

  /// Sum of u^2 with u = g (row_root column_root).
  double (*row_update)(const float* gradient, float row_root, const float* column_root,
                       std::int64_t n);

  /// v = v + rest (g^2 + epsilon - v); returns the sum of u^2 with u = g / sqrt(v).
  double (*vector_update)(const float* gradient, float rest, float epsilon, float* v,
                          std::int64_t n);
};

}  // namespace trireme::kernels::internal
