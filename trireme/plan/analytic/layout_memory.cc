#include "trireme/plan/analytic/layout_memory.h"

#include <algorithm>

namespace trireme::analytic {
namespace {

/// Bytes a token that a rank keeps of one part of a block, in 16 bits, without scores.
struct KeptBytes {
  double shared = 0;  ///< That a tensor group shares.
  double whole = 0;   ///< That it shares with sequence parallel alone.
};

/// Of an input of products: those of f8 keep it in their own type.
double input_bytes(const TrainLayout& layout) { return layout.type == MatrixType::kF8 ? 1 : 2; }

KeptBytes attention_bytes(const ModelShape& shape, const TrainLayout& layout) {
  const auto hidden = static_cast<double>(shape.hidden);
  const auto inner = static_cast<double>(shape.heads * shape.head_size);
  const auto kv = static_cast<double>(shape.kv_heads * shape.head_size);
  const double mask = shape.has_dropout ? hidden : 0;
  // The output product's input is attention's output, which it keeps too: once where both have one type.
  const double copy = layout.type == MatrixType::kF8 ? inner : 0;
  // Queries and keys, values, output; input of the norm, that of the first product, the mask.
  return {2 * (inner + kv) + 2 * kv + 2 * inner + copy,
          2 * hidden + input_bytes(layout) * hidden + mask};
}

KeptBytes feed_forward_bytes(const ModelShape& shape, const TrainLayout& layout) {
  const auto hidden = static_cast<double>(shape.hidden);
  const auto ffn = static_cast<double>(shape.ffn * shape.active_experts);
  const double mask = shape.has_dropout ? hidden : 0;
  return {2 * ffn * (shape.is_gated ? 2 : 1) + input_bytes(layout) * ffn,
          2 * hidden + input_bytes(layout) * hidden + mask};
}

double kept(const KeptBytes& bytes, double tokens, const TrainLayout& layout) {
  const auto tensor = static_cast<double>(layout.tensor);
  const double scale = layout.type == MatrixType::kF32 ? 2 : 1;
  return tokens * scale *
         (bytes.shared / tensor + bytes.whole / (layout.has_sequence_parallel ? tensor : 1));
}

double score_bytes(const ModelShape& shape, double tokens, double keys, const TrainLayout& layout) {
  if (layout.has_fused_attention || layout.recompute != RecomputeKind::kNone) return 0;
  const double each = shape.has_dropout ? 5 : 2;  // Softmax 2, dropout's mask 1 and output 2.
  return each * static_cast<double>(shape.heads) / static_cast<double>(layout.tensor) * tokens *
         keys;
}

/// Of a block whose outputs are all kept.
double all_kept(const ModelShape& shape, const TrainLayout& layout, bool is_decoder) {
  const double encoder_tokens = layout.tokens();
  const auto encoder_keys = static_cast<double>(layout.seq_len);
  double tokens = encoder_tokens, keys = encoder_keys;
  if (is_decoder) {
    keys = static_cast<double>(shape.decoder_seq_len);
    tokens *= keys / encoder_keys;
  }
  double bytes = kept(attention_bytes(shape, layout), tokens, layout) +
                 kept(feed_forward_bytes(shape, layout), tokens, layout) +
                 score_bytes(shape, tokens, keys, layout);
  if (is_decoder) {
    bytes += kept(attention_bytes(shape, layout), tokens, layout) +
             score_bytes(shape, tokens, encoder_keys, layout);
  }
  return bytes;
}

/// Inputs of the block, outputs of attention and half of those of products.
double half_kept(const ModelShape& shape, const TrainLayout& layout) {
  const auto hidden = static_cast<double>(shape.hidden);
  const auto inner = static_cast<double>(shape.heads * shape.head_size);
  const auto kv = static_cast<double>(shape.kv_heads * shape.head_size);
  const auto wide =
      static_cast<double>((shape.is_gated ? 2 : 1) * shape.ffn * shape.active_experts);
  const double products = 2 * (inner + 2 * kv + wide) / 2;
  return kept({2 * inner + products, 2 * hidden + 2 * hidden}, layout.tokens(), layout);
}

double block_bytes(const ModelShape& shape, const TrainLayout& layout, bool is_decoder) {
  if (layout.recompute == RecomputeKind::kHalf && !is_decoder) return half_kept(shape, layout);
  if (layout.recompute != RecomputeKind::kFull) return all_kept(shape, layout, is_decoder);
  double tokens = layout.tokens();
  if (is_decoder) {
    tokens *= static_cast<double>(shape.decoder_seq_len) / static_cast<double>(layout.seq_len);
  }
  const double shared = layout.has_sequence_parallel ? static_cast<double>(layout.tensor) : 1;
  return 2 * tokens * static_cast<double>(shape.hidden) / shared;
}

/// Outputs of convolutions, once before and once after their norm.
double residual_bytes(const ModelShape& shape, const TrainLayout& layout, std::int64_t block) {
  const double scale = static_cast<double>(layout.seq_len) / 224;
  double elements = 0, last = 0;
  for (const Convolution& one : shape.convolutions) {
    if (one.block != block) continue;
    last = static_cast<double>(one.out * one.size * one.size) * scale * scale;
    elements += 2 * last;
  }
  if (layout.recompute == RecomputeKind::kFull) elements = last;
  const double bytes = layout.type == MatrixType::kF32 ? 4 : 2;
  return static_cast<double>(layout.microbatch) * elements * bytes;
}

double activation_of(const ModelShape& shape, const TrainLayout& layout, std::int64_t block) {
  if (!shape.is_transformer()) return residual_bytes(shape, layout, block);
  return block_bytes(shape, layout, block >= shape.layers);
}

double parameters_of(const ModelShape& shape, std::int64_t block) {
  if (shape.is_transformer()) {
    return static_cast<double>(block >= shape.layers ? decoder_block_parameters(shape)
                                                     : block_parameters(shape));
  }
  double result = 0;
  for (const Convolution& one : shape.convolutions) {
    if (one.block == block) {
      result += static_cast<double>(one.in * one.out * one.kernel * one.kernel + 2 * one.out);
    }
  }
  return result;
}

/// Logits in f32, their gradient, and in the type of products.
double head_bytes(const ModelShape& shape, const TrainLayout& layout) {
  if (!shape.is_transformer()) return 0;
  double tokens = layout.tokens();
  if (shape.decoder_layers > 0) {
    tokens *= static_cast<double>(shape.decoder_seq_len) / static_cast<double>(layout.seq_len);
  }
  constexpr double kBytes = 2 + 4 + 4;
  return kBytes * tokens * static_cast<double>(shape.vocab) / static_cast<double>(layout.tensor);
}

void add_states(const TrainLayout& layout, double num_parameters, MemoryByKind& memory) {
  const auto replicas = static_cast<double>(layout.data * layout.context);
  const auto part = [&](ShardingKind from) { return layout.sharding >= from ? replicas : 1.0; };
  const bool is_f32 = layout.type == MatrixType::kF32;
  const bool is_sharded = layout.sharding >= ShardingKind::kGradients;
  // Where parameters are in parts, products take the gathered copies of the f32 ones.
  const bool is_f8_once = layout.type == MatrixType::kF8 && layout.keeps_f8_once;
  const double value_bytes = is_f32       ? 4
                             : is_f8_once ? 1
                                          : 2;  // f8: once in either order, or in both.
  memory.values =
      is_sharded && !is_f32 ? 0 : num_parameters * value_bytes / part(ShardingKind::kParameters);
  memory.gradients = num_parameters * gradient_bytes(layout) / part(ShardingKind::kGradients);
  memory.state = num_parameters * (is_f32 ? 8 : 12) / part(ShardingKind::kState);
  // 1113 MiB on V100 (bigscience experiments/tr3m-1B3.md).
  memory.driver = 1113.0 * 1024 * 1024;
  if (layout.sharding == ShardingKind::kState && !layout.is_overlapped) {
    // Gradients once more, in the order of their owners, and buckets of half a billion of 16 bits that are scattered and gathered.
    memory.gradients += 2 * num_parameters;
    memory.working += 2 * std::min(num_parameters, 0.5e9) * 2;
  }
}

}  // namespace

double block_activation_bytes(const ModelShape& shape, const TrainLayout& layout) {
  return block_bytes(shape, layout, false);
}

std::vector<std::int64_t> split_blocks(std::int64_t num_blocks, std::int64_t num_parts) {
  std::vector<std::int64_t> first(num_parts + 1);
  const std::int64_t each = num_blocks / num_parts;
  const std::int64_t longer = num_blocks % num_parts;
  const std::int64_t begin = (num_parts - longer) / 2;  // Of the longer parts.
  for (std::int64_t part = 0; part < num_parts; ++part) {
    const bool is_longer = part >= begin && part < begin + longer;
    first[part + 1] = first[part] + each + (is_longer ? 1 : 0);
  }
  return first;
}

std::vector<double> rank_parameters(const ModelShape& shape, const TrainLayout& layout) {
  const std::int64_t parts = layout.pipeline * layout.virtual_stages;
  const std::vector<std::int64_t> first = split_blocks(shape.num_blocks(), parts);
  std::vector<double> result(layout.pipeline);
  for (std::int64_t part = 0; part < parts; ++part) {
    for (std::int64_t block = first[part]; block < first[part + 1]; ++block) {
      result[part % layout.pipeline] += parameters_of(shape, block);
    }
  }
  if (shape.is_transformer()) {
    const double table = static_cast<double>(shape.vocab * shape.hidden);
    result.front() += static_cast<double>(outer_parameters(shape)) - (shape.is_tied ? 0 : table);
    // A tied head has a copy of the embedding on the last rank.
    if (layout.pipeline > 1 || !shape.is_tied) result.back() += table;
  } else {
    result.back() += static_cast<double>(shape.classes * (shape.convolutions.back().out + 1));
  }
  for (double& count : result) count /= static_cast<double>(layout.tensor);
  return result;
}

std::vector<MemoryByKind> rank_memory(const ModelShape& shape, const TrainLayout& layout,
                                      PipelineClocks& clocks) {
  const std::int64_t parts = layout.pipeline * layout.virtual_stages;
  const std::vector<std::int64_t> first = split_blocks(shape.num_blocks(), parts);
  std::vector<double> bytes(parts);
  std::vector<double> working(layout.pipeline);
  for (std::int64_t part = 0; part < parts; ++part) {
    double& most = working[part % layout.pipeline];
    for (std::int64_t block = first[part]; block < first[part + 1]; ++block) {
      bytes[part] += activation_of(shape, layout, block);
      if (layout.recompute >= RecomputeKind::kHalf && shape.is_transformer()) {
        most = std::max(most, all_kept(shape, layout, block >= shape.layers));
      }
      if (layout.sharding >= ShardingKind::kGradients) {
        // This block's and the next one's parameters in 16 bits, and whole gradients of one.
        const double whole = parameters_of(shape, block) / static_cast<double>(layout.tensor);
        most = std::max(most, 6 * whole);
      }
    }
  }
  working.back() = std::max(working.back(), head_bytes(shape, layout));
  const std::vector<double> held = clocks.most_held(
      {layout.schedule, static_cast<int>(layout.pipeline), static_cast<int>(layout.virtual_stages),
       static_cast<int>(layout.num_microbatches())},
      bytes);
  const std::vector<double> counts = rank_parameters(shape, layout);
  std::vector<MemoryByKind> result(layout.pipeline);
  for (std::int64_t rank = 0; rank < layout.pipeline; ++rank) {
    add_states(layout, counts[rank], result[rank]);
    result[rank].activations = held[rank];
    result[rank].working += working[rank];
  }
  return result;
}

}  // namespace trireme::analytic
