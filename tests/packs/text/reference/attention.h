#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "packs/text/kernels/attention.h"
#include "trireme/base/random.h"

namespace trireme::text::reference {

/// Whether dropout keeps an element, as attention.h defines it. stream: b * H + h.
inline bool keeps(const AttentionSettings& options, std::int64_t stream, std::int64_t i,
                  std::int64_t j) {
  const auto word = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto four = philox({word(i % 16 * 16 + j % 16), word(i / 16), word(j / 128), word(stream)},
                           {word(options.seed), word(options.seed >> 32)});
  const std::int64_t v = j % 128 / 16;
  const std::uint32_t half = v % 2 == 1 ? four[v / 2] >> 16 : four[v / 2] & 0xFFFFU;
  return half >= std::round(options.drop_probability * 65536);
}

/// `attention` as its header defines it, in arithmetic of T. Its gradient is judged by differences.
template <typename T>
void attention(const AttentionShape& shape, const AttentionSettings& options, const T* q,
               const T* k, const T* v, T* out, T* log_sum) {
  const std::int64_t H = shape.num_heads, d = shape.width, S = options.bias_length;
  const T keep_scale =
      T{1} / (T{1} - static_cast<T>(std::round(options.drop_probability * 65536) / 65536));
  for (std::int64_t b = 0; b + 1 < static_cast<std::int64_t>(shape.offsets.size()); ++b) {
    const std::int64_t begin = shape.offsets[b], n = shape.offsets[b + 1] - begin;
    for (std::int64_t row = 0; row < n * H; ++row) {
      const std::int64_t i = row / H, h = row % H;
      const auto at = [&](std::int64_t token) { return ((begin + token) * H + h) * d; };
      const std::int64_t visible = options.is_causal ? i + 1 : n;
      std::vector<T> scores(visible);
      T highest = -std::numeric_limits<T>::infinity();
      for (std::int64_t j = 0; j < visible; ++j) {
        for (std::int64_t c = 0; c < d; ++c) scores[j] += q[at(i) + c] * k[at(j) + c];
        scores[j] /= std::sqrt(static_cast<T>(d));
        if (options.bias != nullptr) scores[j] += options.bias[(h * S + i) * S + j];
        highest = std::max(highest, scores[j]);
      }
      T total = 0;
      for (const T score : scores) total += std::exp(score - highest);
      log_sum[(begin + i) * H + h] = highest + std::log(total);
      std::fill_n(out + at(i), d, T{0});
      for (std::int64_t j = 0; j < visible; ++j) {
        if (!keeps(options, b * H + h, i, j)) continue;
        const T p = std::exp(scores[j] - highest) / total * keep_scale;
        for (std::int64_t c = 0; c < d; ++c) out[at(i) + c] += p * v[at(j) + c];
      }
    }
  }
}

/// The definition of the gradient as attention.h has it, in arithmetic of T.
template <typename T>
struct AttentionTensors {
  const T *q, *k, *v, *out, *log_sum, *gradient_out;
  T *gradient_q, *gradient_k, *gradient_v;  ///< Added to.
};

template <typename T>
void attention_backward(const AttentionShape& shape, const AttentionSettings& options,
                        const AttentionTensors<T>& x) {
  const std::int64_t H = shape.num_heads, d = shape.width, S = options.bias_length;
  const T scale = 1 / std::sqrt(static_cast<T>(d));
  const T keep_scale =
      T{1} / (T{1} - static_cast<T>(std::round(options.drop_probability * 65536) / 65536));
  for (std::int64_t b = 0; b + 1 < static_cast<std::int64_t>(shape.offsets.size()); ++b) {
    const std::int64_t begin = shape.offsets[b], n = shape.offsets[b + 1] - begin;
    for (std::int64_t row = 0; row < n * H; ++row) {
      const std::int64_t i = row / H, h = row % H;
      const auto at = [&](std::int64_t token) { return ((begin + token) * H + h) * d; };
      const auto dot = [&](const T* a, const T* c) {
        T sum = 0;
        for (std::int64_t e = 0; e < d; ++e) sum += a[e] * c[e];
        return sum;
      };
      const T* g = x.gradient_out + at(i);
      const T delta = dot(g, x.out + at(i));
      for (std::int64_t j = 0; j < (options.is_causal ? i + 1 : n); ++j) {
        T s = dot(x.q + at(i), x.k + at(j)) * scale;
        if (options.bias != nullptr) s += options.bias[(h * S + i) * S + j];
        const T p = std::exp(s - x.log_sum[(begin + i) * H + h]);
        const T z = keeps(options, b * H + h, i, j) ? keep_scale : T{0};
        const T ds = p * (z * dot(g, x.v + at(j)) - delta) * scale;
        for (std::int64_t c = 0; c < d; ++c) {
          x.gradient_v[at(j) + c] += p * z * g[c];
          x.gradient_q[at(i) + c] += ds * x.k[at(j) + c];
          x.gradient_k[at(j) + c] += ds * x.q[at(i) + c];
        }
      }
    }
  }
}

}  // namespace trireme::text::reference
