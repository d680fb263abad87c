#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "trireme/kernels/optimizer/adafactor.h"

namespace trireme::kernels::reference {

/// `u` clipped and applied to `m` and `p`.
template <typename T>
void adafactor_change(const AdafactorOptions& o, std::int64_t step, std::vector<T> u,
                      std::vector<T>& m, std::vector<T>& p) {
  const auto rms = [](const std::vector<T>& x) {
    T sum = 0;
    for (const T value : x) sum += value * value;
    return std::sqrt(sum / static_cast<T>(x.size()));
  };
  const double rate =
      o.learning_rate.value_or(std::min(o.warms_up ? 1e-6 * static_cast<double>(step) : 1e-2,
                                        1 / std::sqrt(static_cast<double>(step))));
  const T alpha = rate * (o.scales_by_parameter ? std::max<T>(o.epsilon2, rms(p)) : 1);
  const T excess = std::max<T>(1, rms(u) / o.clip);
  for (std::size_t i = 0; i < p.size(); ++i) {
    m[i] = o.beta1 * m[i] + (1 - o.beta1) * alpha * u[i] / excess;
    p[i] = (1 - alpha * o.weight_decay) * p[i] - m[i];
  }
}

/// As kernels/optimizer/adafactor.h, written as its formula is; for tests.
template <typename T>
void adafactor(const AdafactorOptions& o, std::int64_t step, const AdafactorShape& shape,
               const std::vector<T>& g, std::vector<T>& row, std::vector<T>& column,
               std::vector<T>& m, std::vector<T>& p) {
  const auto [num_matrices, rows, columns] = shape;
  const T b = 1 - std::pow(static_cast<T>(step), -o.decay_exponent);
  for (T& x : row) x *= b;
  for (T& x : column) x *= b;
  std::vector<T> u(g.size());
  const auto at = [&](std::int64_t k, std::int64_t i, std::int64_t j) {
    return (k * rows + i) * columns + j;
  };
  for (std::int64_t k = 0; k < num_matrices; ++k) {
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        const T square = g[at(k, i, j)] * g[at(k, i, j)] + o.epsilon1;
        row[k * rows + i] += (1 - b) * square / static_cast<T>(columns);
        column[k * columns + j] += (1 - b) * square / static_cast<T>(rows);
      }
    }
    T mean = 0;
    for (std::int64_t i = 0; i < rows; ++i) mean += row[k * rows + i] / static_cast<T>(rows);
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        const T v = row[k * rows + i] * column[k * columns + j] / mean;
        u[at(k, i, j)] = g[at(k, i, j)] / std::sqrt(v);
      }
    }
  }
  adafactor_change(o, step, u, m, p);
}

template <typename T>
void adafactor(const AdafactorOptions& o, std::int64_t step, const std::vector<T>& g,
               std::vector<T>& v, std::vector<T>& m, std::vector<T>& p) {
  const T b = 1 - std::pow(static_cast<T>(step), -o.decay_exponent);
  std::vector<T> u(g.size());
  for (std::size_t i = 0; i < g.size(); ++i) {
    v[i] = b * v[i] + (1 - b) * (g[i] * g[i] + o.epsilon1);
    u[i] = g[i] / std::sqrt(v[i]);
  }
  adafactor_change(o, step, u, m, p);
}

}  // namespace trireme::kernels::reference
