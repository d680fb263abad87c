#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "packs/speech/kernels/loss.h"

namespace trireme::speech::reference {

/// log(exp(a) + exp(b)); NaN where either is.
template <typename T>
T log_add(T a, T b) {
  if (std::isnan(a) || std::isnan(b)) return a + b;
  const T larger = std::max(a, b);
  if (std::isinf(larger)) return larger;
  return larger + std::log(std::exp(a - larger) + std::exp(b - larger));
}

/// log of the sum of exp(x) over each row of V.
template <typename T>
std::vector<T> log_sums_of(const T* x, std::int64_t num_rows, std::int64_t V) {
  std::vector<T> log_sums;
  for (const T* row = x; row != x + num_rows * V; row += V) {
    const T max = *std::max_element(row, row + V);
    T sum = 0;
    for (std::int64_t k = 0; k < V; ++k) sum += std::exp(row[k] - max);
    log_sums.push_back(max + std::log(sum));
  }
  return log_sums;
}

/// transducer_loss_and_gradient as its header defines it, in arithmetic of T.
template <typename T>
void transducer_loss(const Lattices& lattices, const TransducerTargets& targets, const T* logits,
                     const T* loss_gradient, T* loss, T* gradient) {
  const std::int64_t V = targets.vocabulary;
  std::fill_n(gradient, lattices.num_rows() * V, T{0});
  const std::vector<T> log_sums = log_sums_of(logits, lattices.num_rows(), V);
  for (std::int64_t b = 0; b < lattices.num_samples(); ++b) {
    const std::int64_t frames = lattices.num_frames[b];
    const std::int64_t labels = lattices.num_labels[b];
    const auto row = [&](std::int64_t t, std::int64_t u) {
      return (lattices.first_row(b) + t * lattices.frame_stride(b) + u) * V;
    };
    const auto label = [&](std::int64_t u) { return targets.labels[b * lattices.max_labels + u]; };
    const auto log_p = [&](std::int64_t t, std::int64_t u, std::int64_t k) {
      return logits[row(t, u) + k] - log_sums[row(t, u) / V];
    };
    constexpr T kNever = -std::numeric_limits<T>::infinity();
    const auto cell = [&](std::int64_t t, std::int64_t u) { return t * (labels + 2) + u; };
    std::vector<T> alpha((frames + 1) * (labels + 2), kNever);
    std::vector<T> beta = alpha;
    for (std::int64_t t = 0; t < frames; ++t) {
      for (std::int64_t u = 0; u <= labels; ++u) {
        T& here = alpha[cell(t, u)];
        if (t == 0 && u == 0) here = 0;
        if (t > 0) here = log_add(here, alpha[cell(t - 1, u)] + log_p(t - 1, u, targets.blank));
        if (u > 0) here = log_add(here, alpha[cell(t, u - 1)] + log_p(t, u - 1, label(u - 1)));
      }
    }
    beta[cell(frames, labels)] = 0;
    for (std::int64_t t = frames - 1; t >= 0; --t) {
      for (std::int64_t u = labels; u >= 0; --u) {
        T& here = beta[cell(t, u)];
        here = beta[cell(t + 1, u)] + log_p(t, u, targets.blank);
        if (u < labels) here = log_add(here, beta[cell(t, u + 1)] + log_p(t, u, label(u)));
      }
    }
    loss[b] = -beta[0];
    for (std::int64_t t = 0; t < frames; ++t) {
      for (std::int64_t u = 0; u <= labels; ++u) {
        const T before = alpha[cell(t, u)] + loss[b];  // its exponential alone may overflow
        T* dx = gradient + row(t, u);
        for (std::int64_t k = 0; k < V; ++k) {
          const T here = before + log_p(t, u, k);
          T change = std::exp(here + beta[cell(t, u)]);
          if (k == targets.blank) change -= std::exp(here + beta[cell(t + 1, u)]);
          if (u < labels && k == label(u)) change -= std::exp(here + beta[cell(t, u + 1)]);
          dx[k] = loss_gradient[b] * change;
        }
      }
    }
  }
}

}  // namespace trireme::speech::reference
