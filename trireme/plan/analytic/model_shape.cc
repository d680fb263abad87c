#include "trireme/plan/analytic/model_shape.h"

#include <algorithm>
#include <array>
#include <utility>

#include "trireme/error.h"

namespace trireme::analytic {
namespace {

/// Of queries, keys, values and output.
std::int64_t attention_parameters(const ModelShape& shape) {
  const std::int64_t inner = shape.heads * shape.head_size;
  const std::int64_t kv = shape.kv_heads * shape.head_size;
  const std::int64_t bias = shape.has_bias ? inner + 2 * kv + shape.hidden : 0;
  return shape.hidden * (2 * inner + 2 * kv) + bias;
}

std::int64_t feed_forward_parameters(const ModelShape& shape) {
  const std::int64_t wide = (shape.is_gated ? 2 : 1) * shape.ffn;
  const std::int64_t bias = shape.has_bias ? wide + shape.hidden : 0;
  const std::int64_t one = shape.hidden * (wide + shape.ffn) + bias;
  const std::int64_t router = shape.experts > 1 ? shape.hidden * shape.experts : 0;
  return one * shape.experts + router;
}

std::int64_t norm_parameters(const ModelShape& shape) {
  return (shape.has_bias ? 2 : 1) * shape.hidden;
}

/// Each convolution has a batch norm of two values a channel.
std::int64_t convolution_parameters(const Convolution& one) {
  return one.in * one.out * one.kernel * one.kernel + 2 * one.out;
}

void check_positive(const ModelShape& shape, const char* field, std::int64_t value) {
  if (value > 0) return;
  throw Error(ErrorKind::kInvalidArgument, "model '" + shape.name + "': " + field +
                                               " must be at least 1, got " + std::to_string(value));
}

/// FLOPs of a forward pass over one sample, of products and of attention.
double block_flops(const ModelShape& shape, double tokens, double keys, double active) {
  const double inner = static_cast<double>(shape.heads * shape.head_size);
  const double kv = static_cast<double>(shape.kv_heads * shape.head_size);
  const double hidden = static_cast<double>(shape.hidden);
  const double wide = (shape.is_gated ? 3.0 : 2.0) * static_cast<double>(shape.ffn) * active;
  return 2 * tokens * hidden * (2 * inner + 2 * kv + wide) + 4 * tokens * keys * inner;
}

}  // namespace

std::int64_t ModelShape::num_blocks() const {
  if (is_transformer()) return layers + decoder_layers;
  return convolutions.empty() ? 0 : convolutions.back().block + 1;
}

void check(const ModelShape& shape) {
  if (!shape.is_transformer()) {
    check_positive(shape, "convolutions", static_cast<std::int64_t>(shape.convolutions.size()));
    check_positive(shape, "classes", shape.classes);
    return;
  }
  const std::array<std::pair<const char*, std::int64_t>, 9> fields = {{
      {"layers", shape.layers},
      {"hidden", shape.hidden},
      {"heads", shape.heads},
      {"kv_heads", shape.kv_heads},
      {"head_size", shape.head_size},
      {"ffn", shape.ffn},
      {"vocab", shape.vocab},
      {"experts", shape.experts},
      {"active_experts", shape.active_experts},
  }};
  for (const auto& [field, value] : fields) check_positive(shape, field, value);
  if (shape.heads % shape.kv_heads != 0) {
    throw Error(ErrorKind::kInvalidArgument,
                "model '" + shape.name + "': " + std::to_string(shape.heads) +
                    " heads are no multiple of " + std::to_string(shape.kv_heads) +
                    " kv_heads; each group of queries has one");
  }
}

std::int64_t block_parameters(const ModelShape& shape) {
  return attention_parameters(shape) + feed_forward_parameters(shape) + 2 * norm_parameters(shape);
}

std::int64_t decoder_block_parameters(const ModelShape& shape) {
  if (shape.decoder_layers == 0) return 0;
  return block_parameters(shape) + attention_parameters(shape) + norm_parameters(shape);
}

std::int64_t outer_parameters(const ModelShape& shape) {
  const std::int64_t table = shape.vocab * shape.hidden;
  std::int64_t result = table + shape.positions * shape.hidden + norm_parameters(shape);
  if (!shape.is_tied) result += table;
  if (shape.has_embedding_norm) result += norm_parameters(shape);
  if (shape.family == ModelFamily::kT5) {
    constexpr std::int64_t kBuckets = 32;  // Of relative positions, in encoder and decoder.
    result += 2 * kBuckets * shape.heads + norm_parameters(shape);
  }
  if (shape.family == ModelFamily::kBert) {
    // Segments, norm of embeddings for the last one counted above, pooler, transform with norm and output bias of
    // the hidden-token head, next sentence.
    const std::int64_t square = shape.hidden * shape.hidden + shape.hidden;
    result +=
        2 * shape.hidden + 2 * square + norm_parameters(shape) + shape.vocab + 2 * shape.hidden + 2;
  }
  return result;
}

std::int64_t parameters(const ModelShape& shape) {
  if (shape.is_transformer()) {
    return shape.layers * block_parameters(shape) +
           shape.decoder_layers * decoder_block_parameters(shape) + outer_parameters(shape);
  }
  std::int64_t result = shape.classes * (shape.convolutions.back().out + 1);
  for (const Convolution& one : shape.convolutions) result += convolution_parameters(one);
  return result;
}

double model_flops(const ModelShape& shape, std::int64_t seq_len) {
  double forward = 0;
  if (!shape.is_transformer()) {
    for (const Convolution& one : shape.convolutions) {
      forward += 2.0 * static_cast<double>(one.in * one.out * one.kernel * one.kernel) *
                 static_cast<double>(one.size * one.size);
    }
    forward += 2.0 * static_cast<double>(shape.classes * shape.convolutions.back().out);
    return 3 * forward;
  }
  const auto tokens = static_cast<double>(seq_len);
  const auto active = static_cast<double>(shape.active_experts);
  forward += static_cast<double>(shape.layers) * block_flops(shape, tokens, tokens, active);
  double head_tokens = tokens;
  if (shape.decoder_layers > 0) {
    head_tokens = static_cast<double>(shape.decoder_seq_len);
    const double inner = static_cast<double>(shape.heads * shape.head_size);
    const double hidden = static_cast<double>(shape.hidden);
    const double cross =
        2 * hidden * inner * (2 * head_tokens + 2 * tokens) + 4 * head_tokens * tokens * inner;
    forward += static_cast<double>(shape.decoder_layers) *
               (block_flops(shape, head_tokens, head_tokens, active) + cross);
  }
  return 3 * (forward + 2 * head_tokens * static_cast<double>(shape.hidden * shape.vocab));
}

}  // namespace trireme::analytic
