#pragma once

// The passes of adafactor.h. Letters are those of optimizer/adafactor.h.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "trireme/kernels/cuda/adafactor.h"
#include "trireme/kernels/cuda/layerwise_passes.h"
#include "trireme/kernels/cuda/passes.h"
#include "trireme/kernels/optimizer/adafactor.h"
#include "trireme/kernels/simd.h"

namespace trireme::kernels::cuda::internal {

/// What a step knows of the whole tensor.
struct AdafactorTerms {
  double rate;          ///< alpha
  float decay, factor;  ///< m = beta1 m + factor u, p = decay p - m
};

struct AdafactorSpace {
  AdafactorSpace(Cutter cutter, const AdafactorShape& shape)
      : AdafactorSpace(cutter, shape, shape.num_matrices * shape.rows * shape.columns) {}

  /// Of a vector.
  AdafactorSpace(Cutter cutter, std::int64_t n) : AdafactorSpace(cutter, {0, 0, 0}, n) {}

  SquareNorm squares(std::int64_t num_blocks) const { return {lanes, num_blocks}; }

  std::int64_t n, num_rows, num_columns, num_norm_blocks;
  double* lanes;        ///< [num_rows or num_norm_blocks, 16]
  double* means;        ///< [num_matrices] of row.
  float* row_roots;     ///< [num_rows] that a gradient's element is multiplied by.
  float* column_roots;  ///< [num_columns] likewise.
  AdafactorTerms* terms;
  std::int64_t bytes;

 private:
  AdafactorSpace(Cutter cutter, const AdafactorShape& shape, std::int64_t n)
      : n(n),
        num_rows(shape.num_matrices * shape.rows),
        num_columns(shape.num_matrices * shape.columns),
        num_norm_blocks(count_parts(n, kNormBlock)),
        lanes(cutter.take<double>(std::max(num_rows, num_norm_blocks) * kLanes)),
        means(cutter.take<double>(shape.num_matrices)),
        row_roots(cutter.take<float>(num_rows)),
        column_roots(cutter.take<float>(num_columns)),
        terms(cutter.take<AdafactorTerms>(1)),
        bytes(cutter.bytes()) {}
};

// ---- Of the whole tensor

struct AdafactorRate {
  double rate, epsilon2;
  bool scales;
  std::int64_t n;
  SquareNorm parameter;
  AdafactorTerms* terms;

  TRIREME_HOST_DEVICE void operator()(std::int64_t /*i*/) const {
    terms->rate = rate;
    if (!scales) return;
    const double rms = square_root(parameter() / static_cast<double>(n));
    terms->rate = rate * (epsilon2 < rms ? rms : epsilon2);
  }
};

struct AdafactorClip {
  double weight_decay, beta1, clip;
  std::int64_t n;
  SquareNorm update;
  AdafactorTerms* terms;

  TRIREME_HOST_DEVICE void operator()(std::int64_t /*i*/) const {
    const double excess = square_root(update() / static_cast<double>(n)) / clip;
    terms->decay = static_cast<float>(1 - terms->rate * weight_decay);
    terms->factor = static_cast<float>((1 - beta1) * terms->rate / (1 < excess ? excess : 1));
  }
};

template <typename Update, typename State>
struct AdafactorStep {
  Update update;
  float beta1;
  const AdafactorTerms* terms;
  State* m;
  float* parameter;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    float change = terms->factor * update(i);
    if (beta1 != 0) {
      change = beta1 * to_f32(m[i]) + change;
      put(change, m[i]);
    }
    parameter[i] = terms->decay * parameter[i] - change;
  }
};

template <typename Each>
void adafactor_rate_passes(const AdafactorOptions& options, std::int64_t step,
                           const AdafactorSpace& space, const float* parameter, const Each& each) {
  if (options.scales_by_parameter) {
    each(space.num_norm_blocks * kLanes,
         SquareLanes<PlainValues>{{parameter}, space.n, space.lanes});
    each(space.num_norm_blocks, SquareBlocks{space.lanes});
  }
  each(1, AdafactorRate{kernels::internal::unscaled_rate(options, step), options.epsilon2,
                        options.scales_by_parameter, space.n, space.squares(space.num_norm_blocks),
                        space.terms});
}

/// With u in blocks of `block` elements, whose squares are added one after the other.
template <typename Update, typename State, typename Each>
void adafactor_step_passes(const AdafactorOptions& options, const AdafactorSpace& space,
                           const Update& update, std::int64_t block, State* m, float* parameter,
                           const Each& each) {
  const std::int64_t num_blocks = count_parts(space.n, block);
  each(num_blocks * kLanes, SquareLanes<Update>{update, space.n, space.lanes, block});
  each(num_blocks, SquareBlocks{space.lanes});
  each(1, AdafactorClip{options.weight_decay, options.beta1, options.clip, space.n,
                        space.squares(num_blocks), space.terms});
  each(space.n, AdafactorStep<Update, State>{update, static_cast<float>(options.beta1), space.terms,
                                             m, parameter});
}

// ---- Matrices

/// Takes the mean of squares into a moment.
struct MeanSquare {
  double count, rest, epsilon1;

  TRIREME_HOST_DEVICE void operator()(double sum, float& moment) const {
    const double mean = sum / count + epsilon1;
    moment = static_cast<float>(rest == 1 ? mean : moment + rest * (mean - moment));
  }
};

struct RowMoment {
  MeanSquare mean;
  const double* lanes;
  float* row;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const { mean(lanes[i * kLanes], row[i]); }
};

/// The moment of a column, its squares added row by row, and its root.
struct ColumnMoment {
  MeanSquare mean;
  AdafactorShape shape;
  const float* gradient;
  float* column;
  float* column_roots;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const auto [matrix, j] = divide(i, shape.columns);
    const float* first = gradient + matrix * shape.rows * shape.columns + j;
    double sum = 0;
    for (std::int64_t k = 0; k < shape.rows; ++k) {
      const auto g = static_cast<double>(first[k * shape.columns]);
      sum += g * g;
    }
    mean(sum, column[i]);
    column_roots[i] = static_cast<float>(1 / square_root(static_cast<double>(column[i])));
  }
};

struct MeanOfRows {
  std::int64_t rows;
  const float* row;
  double* means;

  TRIREME_HOST_DEVICE void operator()(std::int64_t matrix) const {
    double total = 0;
    for (std::int64_t k = 0; k < rows; ++k) total += row[matrix * rows + k];
    means[matrix] = total / static_cast<double>(rows);
  }
};

struct RowRoot {
  std::int64_t rows;
  const float* row;
  const double* means;
  float* row_roots;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    row_roots[i] = static_cast<float>(square_root(means[divide(i, rows).quotient] / row[i]));
  }
};

/// u
struct MatrixUpdate {
  AdafactorShape shape;
  const float* gradient;
  const float* row_roots;
  const float* column_roots;

  TRIREME_HOST_DEVICE float operator()(std::int64_t i) const {
    const auto [row, j] = divide(i, shape.columns);
    const std::int64_t matrix = divide(row, shape.rows).quotient;
    return gradient[i] * (row_roots[row] * column_roots[matrix * shape.columns + j]);
  }
};

template <typename State, typename Each>
void adafactor_passes(const AdafactorOptions& options, std::int64_t step,
                      const AdafactorShape& shape, const float* gradient, float* row, float* column,
                      State* m, float* parameter, std::span<std::byte> workspace,
                      const Each& each) {
  kernels::internal::check(options, step, shape, m);
  const AdafactorSpace space(Cutter(workspace), shape);
  check_workspace("adafactor", workspace, space.bytes);
  if (space.n == 0) return;
  adafactor_rate_passes(options, step, space, parameter, each);
  const double rest = kernels::internal::rest_of(options, step);
  const MeanSquare of_row{static_cast<double>(shape.columns), rest, options.epsilon1};
  const MeanSquare of_column{static_cast<double>(shape.rows), rest, options.epsilon1};
  each(space.num_rows * kLanes,
       SquareLanes<PlainValues>{{gradient}, space.n, space.lanes, shape.columns});
  each(space.num_rows, SquareBlocks{space.lanes});
  each(space.num_rows, RowMoment{of_row, space.lanes, row});
  each(space.num_columns, ColumnMoment{of_column, shape, gradient, column, space.column_roots});
  each(shape.num_matrices, MeanOfRows{shape.rows, row, space.means});
  each(space.num_rows, RowRoot{shape.rows, row, space.means, space.row_roots});
  adafactor_step_passes(options, space,
                        MatrixUpdate{shape, gradient, space.row_roots, space.column_roots},
                        shape.columns, m, parameter, each);
}

// ---- Vectors

struct VectorMoment {
  float rest, epsilon1;
  bool is_first;
  const float* gradient;
  float* v;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const float g = gradient[i], old_v = is_first ? 0 : v[i];
    v[i] = old_v + rest * (g * g + epsilon1 - old_v);
  }
};

/// u
struct VectorUpdate {
  const float* gradient;
  const float* v;

  TRIREME_HOST_DEVICE float operator()(std::int64_t i) const {
    return gradient[i] / square_root(v[i]);
  }
};

template <typename State, typename Each>
void adafactor_passes(const AdafactorOptions& options, std::int64_t step, const float* gradient,
                      float* v, State* m, float* parameter, std::int64_t n,
                      std::span<std::byte> workspace, const Each& each) {
  kernels::internal::check(options, step, {1, 1, n}, m);
  const AdafactorSpace space(Cutter(workspace), n);
  check_workspace("adafactor", workspace, space.bytes);
  if (n == 0) return;
  adafactor_rate_passes(options, step, space, parameter, each);
  each(n, VectorMoment{static_cast<float>(kernels::internal::rest_of(options, step)),
                       static_cast<float>(options.epsilon1), step == 1, gradient, v});
  adafactor_step_passes(options, space, VectorUpdate{gradient, v}, kNormBlock, m, parameter, each);
}

}  // namespace trireme::kernels::cuda::internal
