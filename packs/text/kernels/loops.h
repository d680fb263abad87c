// One head's forward and backward, for one set of instructions. Compiled by each_isa.h.

#ifndef TRIREME_ISA_NAMESPACE  // this file alone
#define TRIREME_ISA_NAMESPACE portable
#define TRIREME_PART_BYTES 16
#endif

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "packs/text/kernels/head.h"
#include "packs/text/kernels/product.h"
#include "trireme/kernels/philox.h"

namespace trireme::text::TRIREME_ISA_NAMESPACE {

using namespace kernels::TRIREME_ISA_NAMESPACE;  // lanes.h

namespace {

using internal::Head;
using internal::HeadBackward;
using internal::HeadForward;
using internal::kBlockStride;
using internal::kDrawRows;
using internal::kDrawWords;
using internal::kKeys;
using internal::kQueries;
using internal::rounded_up;

/// A workspace, handed out from its front.
struct Cutter {
  float* next;
  float* take(std::int64_t n) { return std::exchange(next, next + n); }
};

std::int64_t padded_width(const Head& head) { return rounded_up(head.width, kLanes); }

/// Asks for the part of a row some rows ahead: rows of a head are pages apart, where processors do
/// not look by themselves.
template <int Writes>
inline __attribute__((always_inline)) void ask_ahead(const Head& head, const float* row) {
  constexpr std::int64_t kRowsAhead = 12;
  for (std::int64_t i = 0; i < head.width; i += kLanes) {
    __builtin_prefetch(row + kRowsAhead * head.stride() + i, Writes);
  }
}

/// Rows begin .. begin + num_rows of a tensor, times scale, with columns of 0 up to whole vectors
/// and rows of 0 behind the last of the sequence.
void copy_rows(const Head& head, const float* x, float scale, std::int64_t begin,
               std::int64_t num_rows, float* rows) {
  const std::int64_t width = padded_width(head);
  const std::int64_t present = std::clamp<std::int64_t>(head.length - begin, 0, num_rows);
  for (std::int64_t r = 0; r < present; ++r) {
    const float* row = x + (begin + r) * head.stride();
    ask_ahead<0>(head, row);
    for (std::int64_t i = 0; i < head.width; i += kLanes) {
      const Lanes values = load_first(row + i, head.width - i);
      store(values * all(scale), rows + r * width + i);
    }
  }
  std::fill(rows + present * width, rows + num_rows * width, 0.0F);
}

/// A block of keys, transposed: [width, kBlockStride], 0 behind the last of the sequence.
void transpose_rows(const Head& head, const float* x, std::int64_t begin, float* columns) {
  const std::int64_t present = std::min(head.length - begin, kKeys);
  for (std::int64_t i = 0; i < head.width; ++i) {
    std::fill(columns + i * kBlockStride + present, columns + (i + 1) * kBlockStride, 0.0F);
  }
  for (std::int64_t key = 0; key < present; ++key) {
    const float* row = x + (begin + key) * head.stride();
    ask_ahead<0>(head, row);
    for (std::int64_t i = 0; i < head.width; ++i) columns[i * kBlockStride + key] = row[i];
  }
}

void store_rows(const Head& head, const float* rows, float scale, std::int64_t begin,
                std::int64_t num_rows, float* x) {
  const std::int64_t width = padded_width(head);
  for (std::int64_t r = 0; r < num_rows; ++r) {
    float* row = x + (begin + r) * head.stride();
    ask_ahead<1>(head, row);
    for (std::int64_t i = 0; i < head.width; i += kLanes) {
      store_first(load(rows + r * width + i) * all(scale), head.width - i, row + i);
    }
  }
}

/// Keys that a query attends to: those before this one.
std::int64_t num_visible(const Head& head, std::int64_t query) {
  return head.is_causal ? query + 1 : head.length;
}

/// Random words of a group of rows and a block of keys, as attention.h numbers them.
void draw(const Head& head, std::int64_t row, std::int64_t key, float* words) {
  kernels::philox_row({static_cast<std::uint32_t>(row / kDrawRows),
                       static_cast<std::uint32_t>(key / kKeys), head.stream},
                      head.key, kDrawWords / 4, reinterpret_cast<std::uint32_t*>(words));
}

/// Lanes that dropout keeps, 0 in the others: `vector` counts those of a block of keys.
inline __attribute__((always_inline)) Lanes kept(const float* words, std::int64_t row,
                                                 std::int64_t vector, std::int32_t threshold,
                                                 const Lanes& a) {
  Lanes r;
  const float* own = words + vector / 2 * (kDrawWords / 4) + row % kDrawRows * kLanes;
  for (int p = 0; p < kParts; ++p) {
    IntPart bits;
    std::memcpy(&bits, own + p * kPartLanes, sizeof bits);
    bits = (bits >> static_cast<int>(vector % 2 * 16)) & 0xFFFF;
    r.part[p] = bits >= threshold ? a.part[p] : Part{};
  }
  return r;
}

/// Scores of a query from its products: bias added, -infinity where it does not attend. [n], a
/// multiple of 16, from key `begin` on. Returns the lanes' maxima.
Lanes score_row(const Head& head, std::int64_t query, std::int64_t begin, std::int64_t n,
                float* scores) {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  const std::int64_t visible = std::clamp<std::int64_t>(num_visible(head, query) - begin, 0, n);
  const float* bias = head.bias == nullptr ? nullptr : head.bias + query * head.bias_stride + begin;
  for (std::int64_t i = 0; bias != nullptr && i < visible; i += kLanes) {
    store(load(scores + i) + load_first(bias + i, visible - i), scores + i);
  }
  std::fill(scores + visible, scores + n, kNone);
  Lanes highest = all(kNone);
  for (std::int64_t i = 0; i < n; i += kLanes) highest = larger(load(scores + i), highest);
  return highest;
}

/// Scores become e^(score - shift). Returns their sum.
float exponentiate(float* scores, std::int64_t n, float shift) {
  Lanes total = all(0);
  for (std::int64_t i = 0; i < n; i += kLanes) {
    const Lanes p = exponential(load(scores + i) - all(shift));
    store(p, scores + i);
    total = total + p;
  }
  return sum(total);
}

void drop(const Head& head, std::int64_t begin, std::int64_t num_rows, std::int64_t n,
          std::int64_t stride, float* p, float* words) {
  for (std::int64_t key = 0; key < n; key += kKeys) {
    const std::int64_t vectors = std::min(n - key, kKeys) / kLanes;
    for (std::int64_t r = 0; r < num_rows; ++r) {
      if (r % kDrawRows == 0) draw(head, begin + r, key, words);
      float* row = p + r * stride + key;
      for (std::int64_t v = 0; v < vectors; ++v) {
        const Lanes values = load(row + v * kLanes);
        store(kept(words, r, v, head.drop_threshold, values), row + v * kLanes);
      }
    }
  }
}

void forward(const Head& head, const HeadForward& tensors, float* workspace) {
  const std::int64_t width = padded_width(head), n = head.length;
  const std::int64_t keys = rounded_up(n, kKeys), stride = keys + kLanes;
  Cutter cutter{workspace};
  float* k_columns = cutter.take(keys / kKeys * width * kBlockStride);
  float* v_rows = cutter.take(keys * width);
  float* p = cutter.take(kQueries * stride);
  float* q_rows = cutter.take(kQueries * width);
  float* out = cutter.take(kQueries * width);
  float* words = cutter.take(kDrawWords);
  for (std::int64_t key = 0; key < n; key += kKeys) {
    transpose_rows(head, head.k, key, k_columns + key / kKeys * width * kBlockStride);
  }
  copy_rows(head, head.v, 1, 0, keys, v_rows);
  for (std::int64_t begin = 0; begin < n; begin += kQueries) {
    const std::int64_t num_rows = std::min(n - begin, kQueries);
    const std::int64_t attended = num_visible(head, begin + num_rows - 1);
    const std::int64_t columns = rounded_up(attended, kLanes);
    copy_rows(head, head.q, head.scale, begin, kQueries, q_rows);
    for (std::int64_t key = 0; key < attended; key += kKeys) {
      multiply({q_rows, width, 1, k_columns + key / kKeys * width * kBlockStride, kBlockStride,
                p + key, stride},
               {num_rows, std::min(columns - key, kKeys), head.width}, false);
    }
    float factors[kQueries];
    for (std::int64_t r = 0; r < num_rows; ++r) {
      float* row = p + r * stride;
      const float highest = largest(score_row(head, begin + r, 0, columns, row));
      const float total = exponentiate(row, columns, highest);
      tensors.log_sum[(begin + r) * head.num_heads] = highest + std::log(total);
      factors[r] = head.keep_scale / total;
    }
    if (head.drop_threshold > 0) drop(head, begin, num_rows, columns, stride, p, words);
    multiply({p, stride, 1, v_rows, width, out, width}, {num_rows, width, attended}, false);
    for (std::int64_t r = 0; r < num_rows; ++r) {
      store_rows(head, out + r * width, factors[r], begin + r, 1, tensors.out);
    }
  }
}

/// A block of scores and one of dO V^T become dropped probabilities and gradients of scores.
void differentiate(const Head& head, std::int64_t begin, std::int64_t key, std::int64_t columns,
                   const float* log_sum, const float* delta, float* p, float* ds, float* words) {
  const std::int64_t num_rows = std::min(head.length - begin, kQueries);
  for (std::int64_t r = 0; r < num_rows; ++r) {
    if (head.drop_threshold > 0 && r % kDrawRows == 0) draw(head, begin + r, key, words);
    float* p_row = p + r * kBlockStride;
    float* ds_row = ds + r * kBlockStride;
    score_row(head, begin + r, key, columns, p_row);
    const Lanes shift = all(log_sum[(begin + r) * head.num_heads]);
    const Lanes mean = all(delta[begin + r]);
    for (std::int64_t i = 0; i < columns; i += kLanes) {
      const Lanes probability = exponential(load(p_row + i) - shift);
      Lanes gradient = load(ds_row + i);
      Lanes passed = probability;
      if (head.drop_threshold > 0) {
        gradient = kept(words, r, i / kLanes, head.drop_threshold, gradient);
        passed = kept(words, r, i / kLanes, head.drop_threshold, probability);
      }
      store(passed, p_row + i);
      store(probability * (gradient - mean), ds_row + i);
    }
  }
}

void delta_rows(const Head& head, const HeadBackward& tensors, float* delta) {
  for (std::int64_t r = 0; r < head.length; ++r) {
    Lanes total = all(0);
    ask_ahead<0>(head, tensors.out + r * head.stride());
    ask_ahead<0>(head, tensors.gradient_out + r * head.stride());
    for (std::int64_t i = 0; i < head.width; i += kLanes) {
      const std::int64_t at = r * head.stride() + i, left = head.width - i;
      total = multiply_add(load_first(tensors.gradient_out + at, left),
                           load_first(tensors.out + at, left), total);
    }
    delta[r] = sum(total);
  }
}

void backward(const Head& head, const HeadBackward& tensors, float* workspace) {
  const std::int64_t width = padded_width(head), n = head.length;
  const std::int64_t queries = rounded_up(n, kQueries);
  Cutter cutter{workspace};
  float* q_rows = cutter.take(queries * width);
  float* g_rows = cutter.take(queries * width);
  float* dq_rows = cutter.take(queries * width);
  float* k_columns = cutter.take(width * kBlockStride);
  float* v_columns = cutter.take(width * kBlockStride);
  float* k_rows = cutter.take(kBlockStride * width);
  float* dk_rows = cutter.take(kBlockStride * width);
  float* dv_rows = cutter.take(kBlockStride * width);
  float* p = cutter.take(kQueries * kBlockStride);
  float* ds = cutter.take(kQueries * kBlockStride);
  float* delta = cutter.take(rounded_up(queries, kLanes));
  float* words = cutter.take(kDrawWords);
  copy_rows(head, head.q, head.scale, 0, queries, q_rows);
  copy_rows(head, tensors.gradient_out, head.keep_scale, 0, queries, g_rows);
  std::fill_n(dq_rows, queries * width, 0.0F);
  std::fill_n(p, 2 * kQueries * kBlockStride, 0.0F);  // tiles read a few columns more
  delta_rows(head, tensors, delta);
  for (std::int64_t key = 0; key < n; key += kKeys) {
    const std::int64_t num_keys = std::min(n - key, kKeys);
    const std::int64_t columns = rounded_up(num_keys, kLanes);
    transpose_rows(head, head.k, key, k_columns);
    transpose_rows(head, head.v, key, v_columns);
    copy_rows(head, head.k, 1, key, kKeys, k_rows);
    std::fill_n(dk_rows, 2 * kBlockStride * width, 0.0F);
    const std::int64_t first = head.is_causal ? key / kQueries * kQueries : 0;
    for (std::int64_t begin = first; begin < n; begin += kQueries) {
      const std::int64_t num_rows = std::min(n - begin, kQueries);
      const float* q = q_rows + begin * width;
      const float* g = g_rows + begin * width;
      const ProductSize of_scores{num_rows, columns, head.width};
      multiply({q, width, 1, k_columns, kBlockStride, p, kBlockStride}, of_scores, false);
      multiply({g, width, 1, v_columns, kBlockStride, ds, kBlockStride}, of_scores, false);
      differentiate(head, begin, key, columns, tensors.log_sum, delta, p, ds, words);
      const ProductSize of_keys{num_keys, width, num_rows};
      multiply({p, 1, kBlockStride, g, width, dv_rows, width}, of_keys, true);
      multiply({ds, 1, kBlockStride, q, width, dk_rows, width}, of_keys, true);
      multiply({ds, kBlockStride, 1, k_rows, width, dq_rows + begin * width, width},
               {num_rows, width, num_keys}, true);
    }
    store_rows(head, dk_rows, 1, key, num_keys, tensors.gradient_k);
    store_rows(head, dv_rows, 1, key, num_keys, tensors.gradient_v);
  }
  store_rows(head, dq_rows, head.scale, 0, n, tensors.gradient_q);
}

}  // namespace

inline constexpr internal::AttentionLoops kAttentionLoops = {forward, backward};

}  // namespace trireme::text::TRIREME_ISA_NAMESPACE
