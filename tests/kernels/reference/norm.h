#pragma once

#include <cstdint>

namespace trireme::kernels::reference {

/// As kernels/norm/norm.h, written as the definition says; for tests.
double sum_of_squares(const float* x, std::int64_t n);
double sum_of_squares(const double* x, std::int64_t n);

}  // namespace trireme::kernels::reference
