#pragma once

// The passes of attention.h. A piece is a head of a sequence, b * H + h; a row one of its queries.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include "packs/text/cuda/attention.h"
#include "packs/text/kernels/attention.h"
#include "trireme/base/random.h"
#include "trireme/error.h"
#include "trireme/kernels/cuda/dropout.h"
#include "trireme/kernels/cuda/passes.h"
#include "trireme/kernels/exponential.h"

namespace trireme::text::cuda::internal {

using namespace kernels;
using namespace kernels::cuda::internal;

/// Query or key i of a piece.
struct TokenPosition {
  std::int64_t piece, i, length;
  std::int64_t row;  ///< Of log_sum; times the width of the tensors.

  TRIREME_HOST_DEVICE bool is_present() const { return i < length; }
};

struct Heads {
  Heads(const DeviceSequences& sequences, const AttentionSettings& options)
      : sequences(sequences),
        scale(static_cast<float>(1 / std::sqrt(static_cast<double>(sequences.width)))),
        is_causal(options.is_causal),
        bias(options.bias),
        bias_length(options.bias_length),
        dropout("attention", options.drop_probability, options.seed) {}

  std::int64_t num_pieces() const { return sequences.num_sequences * sequences.num_heads; }
  std::int64_t num_rows() const { return num_pieces() * sequences.max_length; }
  std::int64_t num_scores() const { return num_rows() * sequences.max_length; }

  /// Of all rows, with those behind the sequences' ends.
  TRIREME_HOST_DEVICE TokenPosition token(std::int64_t padded_row) const {
    const auto [piece, i] = divide(padded_row, sequences.max_length);
    const auto [b, h] = divide(piece, sequences.num_heads);
    const std::int64_t begin = sequences.offsets[b];
    return {piece, i, sequences.offsets[b + 1] - begin, (begin + i) * sequences.num_heads + h};
  }

  TRIREME_HOST_DEVICE std::int64_t row_of(const TokenPosition& token, std::int64_t j) const {
    return token.row + (j - token.i) * sequences.num_heads;
  }

  TRIREME_HOST_DEVICE std::int64_t num_visible(const TokenPosition& query) const {
    return is_causal ? query.i + 1 : query.length;
  }

  TRIREME_HOST_DEVICE float score(const TokenPosition& query, std::int64_t j, const float* q,
                                  const float* k) const {
    const std::int64_t d = sequences.width;
    const float* q_row = q + query.row * d;
    const float* k_row = k + row_of(query, j) * d;
    float sum = 0;
    for (std::int64_t c = 0; c < d; ++c) sum = fma(q_row[c] * scale, k_row[c], sum);
    if (bias == nullptr) return sum;
    const std::int64_t h = query.piece % sequences.num_heads;
    return sum + bias[(h * bias_length + query.i) * bias_length + j];
  }

  /// Whether dropout keeps a probability.
  TRIREME_HOST_DEVICE bool keeps(const TokenPosition& query, std::int64_t j) const {
    if (dropout.threshold == 0) return true;
    const auto word = [](std::int64_t x) { return static_cast<std::uint32_t>(x); };
    const auto words = philox(
        {word(query.i % 16 * 16 + j % 16), word(query.i / 16), word(j / 128), word(query.piece)},
        dropout.key);
    return dropout.keeps(words, j % 128 / 16);
  }

  DeviceSequences sequences;
  float scale;  ///< 1 / sqrt(d)
  bool is_causal;
  const float* bias;
  std::int64_t bias_length;
  Dropout dropout;
};

struct AttentionSpace {
  AttentionSpace(Cutter cutter, const Heads& heads)
      : p(cutter.take<float>(heads.num_scores())),
        ds(cutter.take<float>(heads.num_scores())),
        lanes(cutter.take<float>(heads.num_rows() * 16)),
        rows(cutter.take<float>(heads.num_rows())),
        bytes(cutter.bytes()) {}

  float* p;      ///< [pieces, S, S] scores, then what is left of probabilities.
  float* ds;     ///< [pieces, S, S] gradients of scores.
  float* lanes;  ///< [pieces, S, 16]
  float* rows;   ///< [pieces, S] of a row: the highest score, then a factor; backward: D.
  std::int64_t bytes;
};

inline void check_attention(const DeviceSequences& sequences, const AttentionSettings& options) {
  const auto refuse = [](const std::string& what) {
    throw Error(ErrorKind::kInvalidArgument, "attention: " + what);
  };
  if (sequences.num_heads < 1 || sequences.width < 1) {
    refuse("expected heads and a width of 1 or more, got " + std::to_string(sequences.num_heads) +
           " heads of " + std::to_string(sequences.width));
  }
  if (options.bias != nullptr && sequences.max_length > options.bias_length) {
    refuse("sequences may have " + std::to_string(sequences.max_length) +
           " tokens, but the bias has " + std::to_string(options.bias_length));
  }
}

inline AttentionSpace attention_space(std::span<std::byte> workspace, const Heads& heads) {
  const AttentionSpace cut(Cutter(workspace), heads);
  check_workspace("attention", workspace, cut.bytes);
  return cut;
}

// ---- Forward

/// Score i % S of row i / S.
struct Scores {
  Heads heads;
  const float* q;
  const float* k;
  float* p;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const auto [row, j] = divide(i, heads.sequences.max_length);
    const TokenPosition query = heads.token(row);
    if (query.is_present() && j < heads.num_visible(query)) p[i] = heads.score(query, j, q, k);
  }
};

/// The highest of lane i % 16 of a row.
struct HighestOfLanes {
  Heads heads;
  AttentionSpace space;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const TokenPosition query = heads.token(i / 16);
    if (!query.is_present()) return;
    const float* scores = space.p + i / 16 * heads.sequences.max_length;
    float highest = -std::numeric_limits<float>::infinity();
    for (std::int64_t j = i % 16; j < heads.num_visible(query); j += 16) {
      highest = scores[j] > highest ? scores[j] : highest;
    }
    space.lanes[i] = highest;
  }
};

struct HighestOfRows {
  Heads heads;
  AttentionSpace space;

  TRIREME_HOST_DEVICE void operator()(std::int64_t row) const {
    if (!heads.token(row).is_present()) return;
    float highest = space.lanes[row * 16];
    for (int lane = 1; lane < 16; ++lane) {
      const float other = space.lanes[row * 16 + lane];
      highest = other > highest ? other : highest;
    }
    space.rows[row] = highest;
  }
};

/// Lane i % 16 of a row: scores become e^(score - highest), with their sum, and are dropped.
struct Exponentiate {
  Heads heads;
  AttentionSpace space;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t row = i / 16;
    const TokenPosition query = heads.token(row);
    if (!query.is_present()) return;
    float* scores = space.p + row * heads.sequences.max_length;
    float sum = 0;
    for (std::int64_t j = i % 16; j < heads.num_visible(query); j += 16) {
      const float e = exponential(scores[j] - space.rows[row]);
      sum += e;
      scores[j] = heads.keeps(query, j) ? e : 0;
    }
    space.lanes[i] = sum;
  }
};

struct TotalOfRows {
  Heads heads;
  AttentionSpace space;
  float* log_sum;

  TRIREME_HOST_DEVICE void operator()(std::int64_t row) const {
    const TokenPosition query = heads.token(row);
    if (!query.is_present()) return;
    const float total = tree_of_16(space.lanes + row * 16);
    log_sum[query.row] = space.rows[row] + std::log(total);
    space.rows[row] = heads.dropout.scale / total;
  }
};

/// Element i % d of a row of `out`.
struct MixValues {
  Heads heads;
  AttentionSpace space;
  const float* v;
  float* out;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t d = heads.sequences.width;
    const auto [row, c] = divide(i, d);
    const TokenPosition query = heads.token(row);
    if (!query.is_present()) return;
    const float* p = space.p + row * heads.sequences.max_length;
    float sum = 0;
    for (std::int64_t j = 0; j < heads.num_visible(query); ++j) {
      sum = fma(p[j], v[heads.row_of(query, j) * d + c], sum);
    }
    out[query.row * d + c] = sum * space.rows[row];
  }
};

template <typename Each>
void attention_passes(const DeviceSequences& sequences, const AttentionSettings& options,
                      const float* q, const float* k, const float* v, float* out, float* log_sum,
                      std::span<std::byte> workspace, const Each& each) {
  check_attention(sequences, options);
  const Heads heads(sequences, options);
  const AttentionSpace space = attention_space(workspace, heads);
  each(heads.num_scores(), Scores{heads, q, k, space.p});
  each(heads.num_rows() * 16, HighestOfLanes{heads, space});
  each(heads.num_rows(), HighestOfRows{heads, space});
  each(heads.num_rows() * 16, Exponentiate{heads, space});
  each(heads.num_rows(), TotalOfRows{heads, space, log_sum});
  each(heads.num_rows() * sequences.width, MixValues{heads, space, v, out});
}

// ---- Backward

/// D of a row.
struct OutDotGradient {
  Heads heads;
  AttentionGradient tensors;
  float* rows;

  TRIREME_HOST_DEVICE void operator()(std::int64_t row) const {
    const TokenPosition query = heads.token(row);
    if (!query.is_present()) return;
    const std::int64_t d = heads.sequences.width, begin = query.row * d;
    float lanes[16] = {};
    for (std::int64_t c = 0; c < d; ++c) {
      float& lane = lanes[c % 16];
      lane = fma(tensors.gradient_out[begin + c], tensors.out[begin + c], lane);
    }
    rows[row] = tree_of_16(lanes);
  }
};

/// Score i % S of row i / S: P z and ds.
struct ScoreGradients {
  Heads heads;
  AttentionGradient tensors;
  AttentionSpace space;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const auto [row, j] = divide(i, heads.sequences.max_length);
    const TokenPosition query = heads.token(row);
    if (!query.is_present() || j >= heads.num_visible(query)) return;
    const std::int64_t d = heads.sequences.width;
    const float* g = tensors.gradient_out + query.row * d;
    const float* v = tensors.v + heads.row_of(query, j) * d;
    float gradient = 0;
    for (std::int64_t c = 0; c < d; ++c) gradient = fma(g[c] * heads.dropout.scale, v[c], gradient);
    const float score = heads.score(query, j, tensors.q, tensors.k);
    const float probability = exponential(score - tensors.log_sum[query.row]);
    const bool is_kept = heads.keeps(query, j);
    space.p[i] = is_kept ? probability : 0;
    space.ds[i] = probability * ((is_kept ? gradient : 0) - space.rows[row]);
  }
};

/// Element i % d of a row of gradient_q.
struct QueryGradient {
  Heads heads;
  AttentionGradient tensors;
  const float* ds;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t d = heads.sequences.width;
    const auto [row, c] = divide(i, d);
    const TokenPosition query = heads.token(row);
    if (!query.is_present()) return;
    float sum = 0;
    for (std::int64_t j = 0; j < heads.num_visible(query); ++j) {
      sum = fma(ds[row * heads.sequences.max_length + j], tensors.k[heads.row_of(query, j) * d + c],
                sum);
    }
    tensors.gradient_q[query.row * d + c] = sum * heads.scale;
  }
};

/// Element i % d of a key's row of gradient_k and gradient_v.
struct KeyGradients {
  Heads heads;
  AttentionGradient tensors;
  AttentionSpace space;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t d = heads.sequences.width, S = heads.sequences.max_length;
    const auto [row, c] = divide(i, d);
    const TokenPosition key = heads.token(row);
    if (!key.is_present()) return;
    float of_k = 0, of_v = 0;
    for (std::int64_t query = heads.is_causal ? key.i : 0; query < key.length; ++query) {
      const std::int64_t score = (key.piece * S + query) * S + key.i;
      const std::int64_t element = heads.row_of(key, query) * d + c;
      of_v = fma(space.p[score], tensors.gradient_out[element] * heads.dropout.scale, of_v);
      of_k = fma(space.ds[score], tensors.q[element] * heads.scale, of_k);
    }
    tensors.gradient_k[key.row * d + c] = of_k;
    tensors.gradient_v[key.row * d + c] = of_v;
  }
};

template <typename Each>
void attention_backward_passes(const DeviceSequences& sequences, const AttentionSettings& options,
                               const AttentionGradient& tensors, std::span<std::byte> workspace,
                               const Each& each) {
  check_attention(sequences, options);
  const Heads heads(sequences, options);
  const AttentionSpace space = attention_space(workspace, heads);
  each(heads.num_rows(), OutDotGradient{heads, tensors, space.rows});
  each(heads.num_scores(), ScoreGradients{heads, tensors, space});
  each(heads.num_rows() * sequences.width, QueryGradient{heads, tensors, space.ds});
  each(heads.num_rows() * sequences.width, KeyGradients{heads, tensors, space});
}

}  // namespace trireme::text::cuda::internal
