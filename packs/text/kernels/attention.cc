#include "packs/text/kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "packs/text/kernels/head.h"
#include "trireme/error.h"
#include "trireme/kernels/isa.h"
#include "trireme/kernels/philox.h"
#include "trireme/kernels/scratch.h"

#define TRIREME_LOOPS "packs/text/kernels/loops.h"
#include "trireme/kernels/each_isa.h"

namespace trireme::text {
namespace {

using internal::AttentionLoops;
using internal::Head;

const AttentionLoops& attention_loops() {
  return kernels::of_isa(portable::kAttentionLoops, avx2::kAttentionLoops, avx512::kAttentionLoops);
}

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorKind::kInvalidArgument, "attention: " + what);
}

void check(const AttentionShape& shape, const AttentionSettings& options) {
  if (shape.num_heads < 1 || shape.width < 1) {
    refuse("expected heads and a width of 1 or more, got " + std::to_string(shape.num_heads) +
           " heads of " + std::to_string(shape.width));
  }
  const double p = options.drop_probability;
  if (!(p >= 0 && p < 1)) {
    refuse("expected a probability of dropout in [0, 1), got " + std::to_string(p));
  }
  if (shape.offsets.empty() || shape.offsets[0] != 0) {
    refuse("expected offsets that start at 0, got " +
           (shape.offsets.empty() ? "none" : std::to_string(shape.offsets[0])));
  }
  for (std::size_t b = 0; b + 1 < shape.offsets.size(); ++b) {
    const std::int64_t begin = shape.offsets[b], end = shape.offsets[b + 1];
    const std::string sequence = "sequence " + std::to_string(b);
    if (end < begin) {
      refuse(sequence + " ends at offset " + std::to_string(end) + ", before its begin, " +
             std::to_string(begin));
    }
    if (options.bias != nullptr && end - begin > options.bias_length) {
      refuse(sequence + " has " + std::to_string(end - begin) + " tokens, but the bias " +
             std::to_string(options.bias_length));
    }
  }
}

/// A call of either function: its arguments, checked.
class AttentionCall {
 public:
  AttentionCall(const AttentionShape& shape, const AttentionSettings& options)
      : shape_(shape), options_(options) {
    check(shape, options);
    threshold_ = std::min(std::round(options.drop_probability * 65536), 65535.0);
  }

  std::int64_t num_pieces() const {
    return (static_cast<std::int64_t>(shape_.offsets.size()) - 1) * shape_.num_heads;
  }

  bool has_tokens(std::int64_t piece) const {
    const std::int64_t b = piece / shape_.num_heads;
    return shape_.offsets[b + 1] > shape_.offsets[b];
  }

  /// Elements before row 0 of a piece in log_sum; times the width in the others.
  std::int64_t first_row(std::int64_t piece) const {
    return shape_.offsets[piece / shape_.num_heads] * shape_.num_heads + piece % shape_.num_heads;
  }

  Head head(std::int64_t piece, const float* q, const float* k, const float* v) const {
    const std::int64_t b = piece / shape_.num_heads, h = piece % shape_.num_heads;
    const std::int64_t first = first_row(piece) * shape_.width, S = options_.bias_length;
    return {.length = shape_.offsets[b + 1] - shape_.offsets[b],
            .width = shape_.width,
            .num_heads = shape_.num_heads,
            .scale = static_cast<float>(1 / std::sqrt(static_cast<double>(shape_.width))),
            .is_causal = options_.is_causal,
            .bias = options_.bias == nullptr ? nullptr : options_.bias + h * S * S,
            .bias_stride = S,
            .drop_threshold = static_cast<std::int32_t>(threshold_),
            .keep_scale = static_cast<float>(65536 / (65536 - threshold_)),
            .key = {static_cast<std::uint32_t>(options_.seed),
                    static_cast<std::uint32_t>(options_.seed >> 32)},
            .stream = static_cast<std::uint32_t>(piece),
            .q = q + first,
            .k = k + first,
            .v = v + first};
  }

 private:
  const AttentionShape& shape_;
  const AttentionSettings& options_;
  double threshold_ = 0;
};

}  // namespace

void attention(const AttentionShape& shape, const AttentionSettings& options, const float* q,
               const float* k, const float* v, float* out, float* log_sum,
               const kernels::Spread& spread) {
  const AttentionCall call(shape, options);
  const AttentionLoops& loops = attention_loops();
  spread(call.num_pieces(), [&](std::int64_t piece) {
    if (!call.has_tokens(piece)) return;  // its row 0 may lie behind all memory
    const Head head = call.head(piece, q, k, v);
    const kernels::ScratchFloats workspace(internal::forward_floats(head.length, head.width));
    const std::int64_t first = call.first_row(piece);
    loops.forward(head, {out + first * head.width, log_sum + first}, workspace.floats());
  });
}

void attention_backward(const AttentionShape& shape, const AttentionSettings& options,
                        const AttentionGradient& tensors, const kernels::Spread& spread) {
  const AttentionCall call(shape, options);
  const AttentionLoops& loops = attention_loops();
  spread(call.num_pieces(), [&](std::int64_t piece) {
    if (!call.has_tokens(piece)) return;  // its row 0 may lie behind all memory
    const Head head = call.head(piece, tensors.q, tensors.k, tensors.v);
    const kernels::ScratchFloats workspace(internal::backward_floats(head.length, head.width));
    const std::int64_t first = call.first_row(piece), element = first * head.width;
    loops.backward(head,
                   {.out = tensors.out + element,
                    .log_sum = tensors.log_sum + first,
                    .gradient_out = tensors.gradient_out + element,
                    .gradient_q = tensors.gradient_q + element,
                    .gradient_k = tensors.gradient_k + element,
                    .gradient_v = tensors.gradient_v + element},
                   workspace.floats());
  });
}

}  // namespace trireme::text
