// C = A B or C += A B, for one set of instructions. Compiled by each_isa.h.

#ifndef TRIREME_ISA_NAMESPACE  // this file alone
#define TRIREME_ISA_NAMESPACE portable
#define TRIREME_PART_BYTES 16
#endif

#include "trireme/kernels/lanes.h"

namespace trireme::text::TRIREME_ISA_NAMESPACE {

using namespace kernels::TRIREME_ISA_NAMESPACE;  // lanes.h

namespace {

// A tile of C stays in registers: 24 of 32 with AVX-512, 12 of 16 with AVX2. An element's sum is
// one chain of multiply_add in the order of the steps, however tiles and depths cut it.
constexpr std::int64_t kTileRows = 6;
constexpr int kTileVectors = kPartLanes == kLanes ? 4 : 1;
constexpr std::int64_t kDepth = 64;  // steps at once: 16 KiB of B for a column of tiles

/// a(row, step) = a[row * a_row + step * a_step]; B and C have their columns next to each other.
struct Product {
  const float* a;
  std::int64_t a_row, a_step;
  const float* b;
  std::int64_t b_step;
  float* c;
  std::int64_t c_row;
};

/// The sizes of C, and how many products are summed. rows is rounded up to whole tiles, columns is
/// a multiple of 16.
struct ProductSize {
  std::int64_t rows, columns, steps;
};

template <int Vectors>
void tile(const Product& p, std::int64_t steps, bool adds) {
  Lanes c[kTileRows][Vectors];
#pragma GCC unroll 8
  for (int r = 0; r < kTileRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) {
      c[r][v] = adds ? load(p.c + r * p.c_row + v * kLanes) : all(0);
    }
  }
  const float* a = p.a;
  const float* b = p.b;
  for (std::int64_t step = 0; step < steps; ++step, a += p.a_step, b += p.b_step) {
    Lanes row[Vectors];
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) row[v] = load(b + v * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < kTileRows; ++r) {
      const Lanes factor = all(a[r * p.a_row]);
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) c[r][v] = multiply_add(factor, row[v], c[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kTileRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) store(c[r][v], p.c + r * p.c_row + v * kLanes);
  }
}

void tile_of(std::int64_t vectors, const Product& p, std::int64_t steps, bool adds) {
  if constexpr (kTileVectors == 4) {
    if (vectors >= 4) return tile<4>(p, steps, adds);
    if (vectors == 3) return tile<3>(p, steps, adds);
    if (vectors == 2) return tile<2>(p, steps, adds);
  }
  tile<1>(p, steps, adds);
}

/// adds: to what C holds.
void multiply(const Product& p, const ProductSize& size, bool adds) {
  for (std::int64_t begin = 0; begin < size.steps; begin += kDepth) {
    const std::int64_t steps = size.steps - begin < kDepth ? size.steps - begin : kDepth;
    for (std::int64_t column = 0; column < size.columns; column += kTileVectors * kLanes) {
      for (std::int64_t row = 0; row < size.rows; row += kTileRows) {
        Product part = p;
        part.a += row * p.a_row + begin * p.a_step;
        part.b += begin * p.b_step + column;
        part.c += row * p.c_row + column;
        tile_of((size.columns - column) / kLanes, part, steps, adds || begin > 0);
      }
    }
  }
}

}  // namespace
}  // namespace trireme::text::TRIREME_ISA_NAMESPACE
