#pragma once

// Tensors for Adafactor, and its steps by a processor, for tests.

#include <cstdint>
#include <vector>

#include "tests/kernels/random_numbers.h"
#include "trireme/kernels/optimizer/adafactor.h"

namespace trireme::kernels::cuda {

/// What a step changes, m kept as `State`. A vector has its v in `row`.
template <typename State>
struct AdafactorTensor {
  explicit AdafactorTensor(const AdafactorShape& shape)
      : AdafactorTensor(shape.num_matrices * shape.rows * shape.columns,
                        shape.num_matrices * shape.rows, shape.num_matrices * shape.columns) {}
  explicit AdafactorTensor(std::int64_t n) : AdafactorTensor(n, n, 0) {}

  bool operator==(const AdafactorTensor& other) const {
    return p == other.p && widened(m) == widened(other.m) && row == other.row &&
           column == other.column;
  }

  void step(const AdafactorOptions& options, std::int64_t step, const AdafactorShape& shape,
            const std::vector<float>& g) {
    kernels::adafactor(options, step, shape, g.data(), row.data(), column.data(), m.data(),
                       p.data());
  }
  void step(const AdafactorOptions& options, std::int64_t step, std::int64_t n,
            const std::vector<float>& g) {
    kernels::adafactor(options, step, g.data(), row.data(), m.data(), p.data(), n);
  }

  std::vector<float> gradient(int step) const {
    return random_numbers<float>(std::ssize(p), 10 + static_cast<unsigned>(step), 2);
  }

  std::vector<float> p;
  std::vector<State> m;
  std::vector<float> row, column;

 private:
  /// Moments before the first step may be anything.
  AdafactorTensor(std::int64_t n, std::int64_t num_rows, std::int64_t num_columns)
      : p(random_numbers<float>(n, 1, 0)), m(n), row(num_rows, 7), column(num_columns, 7) {}
};

inline const AdafactorOptions kAdafactorOptions[] = {
    {},
    {.learning_rate = {}, .warms_up = true, .clip = 0.5},
    {.learning_rate = {}, .scales_by_parameter = false, .beta1 = 0.9},
    {.learning_rate = 0.05, .decay_exponent = 0.5, .beta1 = 0.9, .weight_decay = 0.1},
};

}  // namespace trireme::kernels::cuda
