#include "trireme/kernels/optimizer/adafactor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "trireme/error.h"
#include "trireme/kernels/isa.h"
#include "trireme/kernels/norm/norm.h"
#include "trireme/kernels/optimizer/adafactor_terms.h"
#include "trireme/kernels/optimizer/elements.h"

#define TRIREME_LOOPS "trireme/kernels/optimizer/adafactor_loops.h"
#include "trireme/kernels/each_isa.h"

namespace trireme::kernels {
namespace {

const internal::AdafactorLoops& loops() {
  return of_isa(portable::kAdafactorLoops, avx2::kAdafactorLoops, avx512::kAdafactorLoops);
}

/// alpha.
double rate_of(const AdafactorOptions& options, std::int64_t step, const float* parameter,
               std::int64_t n) {
  const double rate = internal::unscaled_rate(options, step);
  if (!options.scales_by_parameter) return rate;
  const double rms = std::sqrt(square_norm(parameter, n) / static_cast<double>(n));
  return rate * std::max(options.epsilon2, rms);
}

/// m = beta1 m + factor u, p = decay p - m.
struct Change {
  Change(const AdafactorOptions& options, double rate, double mean_square)
      : decay(static_cast<float>(1 - rate * options.weight_decay)),
        beta1(static_cast<float>(options.beta1)),
        factor(static_cast<float>((1 - options.beta1) * rate /
                                  std::max(1.0, std::sqrt(mean_square) / options.clip))) {}

  float decay, beta1, factor;
};

/// With u = update(values...).
template <typename State, typename Update, typename... Values>
void apply(const Change& change, std::int64_t n, State* m, float* parameter, const Update& update,
           const Values*... values) {
  if (change.beta1 == 0) {
    internal::for_each_element(
        n,
        [=](float& p, auto... x)
            TRIREME_ELEMENT { p = change.decay * p - change.factor * update(x...); },
        parameter, values...);
    return;
  }
  internal::for_each_element(
      n,
      [=](float& p, State& m, auto... x) TRIREME_ELEMENT {
        const float new_m = change.beta1 * to_f32(m) + change.factor * update(x...);
        internal::put(new_m, m);
        p = change.decay * p - new_m;
      },
      parameter, m, values...);
}

/// Roots that a gradient's element is multiplied by: that of its row and that of its column.
struct Roots {
  explicit Roots(const AdafactorShape& shape)
      : row(shape.num_matrices * shape.rows), column(shape.num_matrices * shape.columns) {}

  std::vector<float> row, column;
};

/// Takes means into `moments` [n]; returns their mean.
double average(const std::vector<double>& sums, double count, double rest, double epsilon,
               float* moments, std::int64_t n) {
  double total = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double mean = sums[i] / count + epsilon;
    moments[i] = static_cast<float>(rest == 1 ? mean : moments[i] + rest * (mean - moments[i]));
    total += moments[i];
  }
  return total / static_cast<double>(n);
}

/// Updates the moments of each matrix.
Roots take_moments(const AdafactorShape& shape, double rest, double epsilon, const float* gradient,
                   float* row, float* column) {
  constexpr std::int64_t kLanes = 16;
  Roots roots(shape);
  std::vector<double> row_sums(shape.rows), column_sums;
  for (std::int64_t matrix = 0; matrix < shape.num_matrices; ++matrix) {
    column_sums.assign((shape.columns + kLanes - 1) / kLanes * kLanes, 0);
    for (double& sum : row_sums) {
      sum = loops().add_row(gradient, column_sums.data(), shape.columns);
      gradient += shape.columns;
    }
    float* const rows = row + matrix * shape.rows;
    float* const columns = column + matrix * shape.columns;
    const double mean =
        average(row_sums, static_cast<double>(shape.columns), rest, epsilon, rows, shape.rows);
    average(column_sums, static_cast<double>(shape.rows), rest, epsilon, columns, shape.columns);
    for (std::int64_t i = 0; i < shape.rows; ++i) {
      roots.row[matrix * shape.rows + i] = static_cast<float>(std::sqrt(mean / rows[i]));
    }
    for (std::int64_t j = 0; j < shape.columns; ++j) {
      roots.column[matrix * shape.columns + j] =
          static_cast<float>(1 / std::sqrt(static_cast<double>(columns[j])));
    }
  }
  return roots;
}

template <typename State>
void factored(const AdafactorOptions& options, std::int64_t step, const AdafactorShape& shape,
              const float* gradient, float* row, float* column, State* m, float* parameter) {
  internal::check(options, step, shape, m);
  const std::int64_t num_rows = shape.num_matrices * shape.rows, n = num_rows * shape.columns;
  if (n == 0) return;
  const double rate = rate_of(options, step, parameter, n);
  const Roots roots = take_moments(shape, internal::rest_of(options, step), options.epsilon1,
                                   gradient, row, column);
  const auto column_roots = [&](std::int64_t i) {
    return roots.column.data() + i / shape.rows * shape.columns;
  };
  double squares = 0;
  for (std::int64_t i = 0; i < num_rows; ++i) {
    squares += loops().row_update(gradient + i * shape.columns, roots.row[i], column_roots(i),
                                  shape.columns);
  }
  const Change change(options, rate, squares / static_cast<double>(n));
  for (std::int64_t i = 0; i < num_rows; ++i) {
    const std::int64_t begin = i * shape.columns;
    apply(
        change, shape.columns, m ? m + begin : m, parameter + begin,
        [row_root = roots.row[i]](float g, float column_root)
            TRIREME_ELEMENT { return g * (row_root * column_root); },
        gradient + begin, column_roots(i));
  }
}

template <typename State>
void unfactored(const AdafactorOptions& options, std::int64_t step, const float* gradient, float* v,
                State* m, float* parameter, std::int64_t n) {
  internal::check(options, step, {1, 1, n}, m);
  if (n == 0) return;
  const double rate = rate_of(options, step, parameter, n);
  const double rest = internal::rest_of(options, step);
  if (step == 1) std::fill_n(v, n, 0.0F);
  double squares = 0;
  for (std::int64_t begin = 0; begin < n; begin += kNormBlock) {
    squares += loops().vector_update(gradient + begin, static_cast<float>(rest),
                                     static_cast<float>(options.epsilon1), v + begin,
                                     std::min(kNormBlock, n - begin));
  }
  apply(
      Change(options, rate, squares / static_cast<double>(n)), n, m, parameter,
      [](float g, float v) TRIREME_ELEMENT { return g / square_root(v); }, gradient, v);
}

}  // namespace

void internal::check(const AdafactorOptions& options, std::int64_t step,
                     const AdafactorShape& shape, const void* m) {
  const auto fail = [](const std::string& what) {
    throw Error(ErrorKind::kInvalidArgument, "Adafactor " + what);
  };
  if (step < 1) fail("counts steps from 1, got " + std::to_string(step));
  for (const std::int64_t size : {shape.num_matrices, shape.rows, shape.columns}) {
    if (size < 0) fail("has dimensions of 0 or more, got " + std::to_string(size));
  }
  const bool is_empty = shape.num_matrices * shape.rows * shape.columns == 0;
  if (options.beta1 != 0 && !m && !is_empty) fail("with a beta1 needs m, got null");
}

double internal::unscaled_rate(const AdafactorOptions& options, std::int64_t step) {
  const auto steps = static_cast<double>(step);
  const double relative = std::min(options.warms_up ? 1e-6 * steps : 1e-2, 1 / std::sqrt(steps));
  return options.learning_rate.value_or(relative);
}

double internal::rest_of(const AdafactorOptions& options, std::int64_t step) {
  return std::pow(static_cast<double>(step), -options.decay_exponent);
}

void adafactor(const AdafactorOptions& options, std::int64_t step, const AdafactorShape& shape,
               const float* gradient, float* row, float* column, float* m, float* parameter) {
  factored(options, step, shape, gradient, row, column, m, parameter);
}

void adafactor(const AdafactorOptions& options, std::int64_t step, const AdafactorShape& shape,
               const float* gradient, float* row, float* column, Bf16* m, float* parameter) {
  factored(options, step, shape, gradient, row, column, m, parameter);
}

void adafactor(const AdafactorOptions& options, std::int64_t step, const float* gradient, float* v,
               float* m, float* parameter, std::int64_t n) {
  unfactored(options, step, gradient, v, m, parameter, n);
}

void adafactor(const AdafactorOptions& options, std::int64_t step, const float* gradient, float* v,
               Bf16* m, float* parameter, std::int64_t n) {
  unfactored(options, step, gradient, v, m, parameter, n);
}

}  // namespace trireme::kernels
