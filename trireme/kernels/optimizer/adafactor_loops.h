// The sums of Adafactor for one set of instructions. Compiled by each_isa.h.

#ifndef TRIREME_ISA_NAMESPACE  // this file alone
#define TRIREME_ISA_NAMESPACE portable
#define TRIREME_PART_BYTES 16
#endif

#include "trireme/kernels/lanes.h"
#include "trireme/kernels/optimizer/adafactor_terms.h"
#include "trireme/kernels/optimizer/elements.h"

namespace trireme::kernels::TRIREME_ISA_NAMESPACE {
namespace {

double add_row(const float* gradient, double* column_sums, std::int64_t n) {
  DoubleLanes row = no_sums();
  for (std::int64_t i = 0; i < n; i += kLanes) {
    internal::ask_for_line(gradient + i);
    const DoubleLanes square = squares(load_first(gradient + i, n - i));
    row = row + square;
    store(load(column_sums + i) + square, column_sums + i);
  }
  return sum(row);
}

double row_update(const float* gradient, float row_root, const float* column_root, std::int64_t n) {
  DoubleLanes sums = no_sums();
  for (std::int64_t i = 0; i < n; i += kLanes) {
    internal::ask_for_line(gradient + i);
    const Lanes scale = all(row_root) * load_first(column_root + i, n - i);
    add_squares(load_first(gradient + i, n - i) * scale, sums);
  }
  return sum(sums);
}

double vector_update(const float* gradient, float rest, float epsilon, float* v, std::int64_t n) {
  DoubleLanes sums = no_sums();
  for (std::int64_t i = 0; i < n; i += kLanes) {
    const std::int64_t left = n - i;
    const Lanes g = load_first(gradient + i, left), old_v = load_first(v + i, left);
    const Lanes new_v = old_v + all(rest) * (g * g + all(epsilon) - old_v);
    store_first(new_v, left, v + i);
    Lanes u = g / root(new_v);
    if (left < kLanes) u = keep((1U << left) - 1, u);  // 0 / 0 where epsilon is 0
    add_squares(u, sums);
  }
  return sum(sums);
}

}  // namespace

inline constexpr internal::AdafactorLoops kAdafactorLoops = {add_row, row_update, vector_update};

}  // namespace trireme::kernels::TRIREME_ISA_NAMESPACE
