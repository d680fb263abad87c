#pragma once

// Alpha and beta of one sample, by diagonals. A cell (t, u) depends on neighbours of the diagonal
// t + u before it (alpha) or after it (beta) only, so the cells of one diagonal are computed at
// once, and arrays are skewed to have them side by side: (t, u) lies at (t + u) * positions + u.
//
//     T = 3, positions = 2       diagonal    u = 0    u = 1
//                                       0    (0,0)      .
//                                       1    (1,0)    (0,1)
//                                       2    (2,0)    (1,1)
//                                       3      .      (2,1)

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "trireme/kernels/exponential.h"
#include "trireme/kernels/simd.h"

namespace trireme::speech::internal {

constexpr double kNever = -std::numeric_limits<double>::infinity();

/// A cell that is met less often than e^it has a gradient of 0: `exponential` is 0 from -86.6.
constexpr double kNoOccupancy = -87;
constexpr float kAllZero = std::numeric_limits<float>::infinity();

/// A sample's part of the workspace.
struct Skewed {
  TRIREME_HOST_DEVICE Skewed(std::byte* memory, std::int64_t frames, std::int64_t positions)
      : frames(frames), positions(positions) {
    const std::int64_t cells = num_cells(frames, positions);
    alpha = reinterpret_cast<double*>(memory);
    beta[0] = alpha + cells;
    beta[1] = beta[0] + positions + 1;
    log_sum = reinterpret_cast<float*>(beta[1] + positions + 1);
    blank = log_sum + cells;
    label = blank + cells;
  }

  TRIREME_HOST_DEVICE static std::int64_t num_cells(std::int64_t frames, std::int64_t positions) {
    return (frames + positions - 1) * positions;
  }
  TRIREME_HOST_DEVICE static std::int64_t num_bytes(std::int64_t frames, std::int64_t positions) {
    const std::int64_t bytes = num_cells(frames, positions) * 20 + 2 * (positions + 1) * 8;
    return (bytes + 7) / 8 * 8;
  }

  TRIREME_HOST_DEVICE std::int64_t cell(std::int64_t t, std::int64_t u) const {
    return (t + u) * positions + u;
  }
  TRIREME_HOST_DEVICE std::int64_t num_diagonals() const { return frames + positions - 1; }
  TRIREME_HOST_DEVICE std::int64_t first(std::int64_t d) const {
    return std::max<std::int64_t>(0, d - frames + 1);
  }
  TRIREME_HOST_DEVICE std::int64_t last(std::int64_t d) const { return std::min(d, positions - 1); }

  std::int64_t frames, positions;
  double* alpha;
  double* beta[2];  ///< [positions + 1] of two diagonals.
  float* log_sum;   ///< Log of the sum over V; by `occupy` the row's shift.
  float* blank;     ///< Log-probability of the blank; by `occupy` how often it is taken.
  float* label;     ///< The same of the next label; 0, never read as such, after the last.
};

/// log(1 + x) for 0 <= x <= 1 within 2^-24; the polynomial is within 5e-9, weighted least squares.
TRIREME_INLINE_LOOP float log_one_plus(float x) {
  float p = 0x1.019494p-8F;
  p = kernels::fma(p, x, -0x1.86d74cp-6F);
  p = kernels::fma(p, x, 0x1.16df2ap-4F);
  p = kernels::fma(p, x, -0x1.03e866p-3F);
  p = kernels::fma(p, x, 0x1.7c4f18p-3F);
  p = kernels::fma(p, x, -0x1.f94bdcp-3F);
  p = kernels::fma(p, x, 0x1.54e2dcp-2F);
  p = kernels::fma(p, x, -0x1.fff862p-2F);
  p = kernels::fma(p, x, 0x1.ffffeap-1F);
  return p * x;
}

/// log(exp(a) + exp(b)): the larger in f64, what the smaller adds, at most log 2, in f32. NaN where
/// either is.
TRIREME_INLINE_LOOP double log_add(double a, double b) {
  const double larger = a > b ? a : b;
  const double smaller = a > b ? b : a;
  const auto distance = static_cast<float>(smaller - larger);
  const double sum = larger + static_cast<double>(log_one_plus(kernels::exponential(distance)));
  return larger == kNever ? smaller : sum;  // which is not above it, or NaN
}

/// Fills `alpha`; returns the log-probability of the labels.
TRIREME_INLINE_LOOP double alpha_loop(const Skewed& s) {
  s.alpha[0] = 0;
  for (std::int64_t d = 1; d < s.num_diagonals(); ++d) {
    double* alpha = s.alpha + d * s.positions;
    const double* before = alpha - s.positions;
    const float* blank = s.blank + (d - 1) * s.positions;
    const float* label = s.label + (d - 1) * s.positions;
    const std::int64_t first = std::max<std::int64_t>(s.first(d), 1);
    const std::int64_t last = std::min(s.last(d), d - 1);
    TRIREME_INDEPENDENT
    for (std::int64_t u = first; u <= last; ++u) {
      alpha[u] = log_add(before[u] + static_cast<double>(blank[u]),
                         before[u - 1] + static_cast<double>(label[u - 1]));
    }
    if (s.first(d) == 0) alpha[0] = before[0] + static_cast<double>(blank[0]);
    if (s.last(d) == d) alpha[d] = before[d - 1] + static_cast<double>(label[d - 1]);
  }
  const std::int64_t end = s.cell(s.frames - 1, s.positions - 1);
  return s.alpha[end] + static_cast<double>(s.blank[end]);
}

/// A cell of occupy_loop: its beta, from those after a blank and after a label. `before` is alpha
/// less the total.
TRIREME_INLINE_LOOP double occupy_cell(double before, double after_blank, double after_label,
                                       float& log_sum, float& blank, float& label) {
  const double by_blank = after_blank + static_cast<double>(blank);
  const double by_label = after_label + static_cast<double>(label);
  const double beta = log_add(by_blank, by_label);
  const double met = before + beta;
  const auto shift = static_cast<float>(static_cast<double>(log_sum) - met);
  log_sum = met < kNoOccupancy ? kAllZero : shift;
  blank = kernels::exponential(static_cast<float>(static_cast<double>(blank) + met)) -
          kernels::exponential(static_cast<float>(before + by_blank));
  label = kernels::exponential(static_cast<float>(static_cast<double>(label) + met)) -
          kernels::exponential(static_cast<float>(before + by_label));
  return beta;
}

/// Beta, and with it what the gradient of a row needs instead of its log-probabilities:
///
///     log_sum -> log_sum - (alpha + beta - total): exp(x - it) is p times how often the cell is
///                met; kAllZero where that is 0 for any x
///     blank   -> exp(alpha + blank + beta(t+1,u) - total): how often the blank is taken there
///     label   -> exp(alpha + label + beta(t,u+1) - total)
TRIREME_INLINE_LOOP void occupy_loop(const Skewed& s, double total) {
  // What lies behind the grid is never met, but for the end behind its last cell.
  std::fill_n(s.beta[0], 2 * (s.positions + 1), kNever);
  double* beta = s.beta[0];
  double* after = s.beta[1];
  after[s.positions - 1] = 0;
  for (std::int64_t d = s.num_diagonals() - 1; d >= 0; --d) {
    const double* alpha = s.alpha + d * s.positions;
    float* log_sum = s.log_sum + d * s.positions;
    float* blank = s.blank + d * s.positions;
    float* label = s.label + d * s.positions;
    const std::int64_t first = s.first(d);
    const std::int64_t last = s.last(d);
    TRIREME_INDEPENDENT
    for (std::int64_t u = first; u <= last; ++u) {
      beta[u] =
          occupy_cell(alpha[u] - total, after[u], after[u + 1], log_sum[u], blank[u], label[u]);
    }
    if (first > 0) beta[first - 1] = kNever;
    std::swap(beta, after);
  }
}

}  // namespace trireme::speech::internal
