#include "trireme/plan/analytic/block_time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

// A transformer's block, forward, of T tokens on a rank of t; h hidden, i = heads x head size, g groups' keys and values, f feed-forward:
//
//     products         T x (i + 2g)/t x h, T x h x i/t, T x f/t x h, T x h x f/t
//     attention        scores T x keys x i/t, twice
//     small operators  bytes of norms, biases, dropout, residuals and what lies between, each read and written once
//     tensor group     two sums of T x h (T5's decoder: three)
//
// The backward has each product twice, and the same sums. Parameters are named as in AchievedParts.

namespace trireme::analytic {
namespace {

/// What one unit computes at a time, and how fast next to the largest.
struct Tile {
  double rows, columns, speed;
};
constexpr std::array kTiles = {Tile{128, 256, 1}, Tile{256, 128, 1}, Tile{128, 128, 0.93},
                               Tile{64, 128, 0.8}, Tile{64, 64, 0.65}};
constexpr double kProductStart =
    95;  // Of its inner length K: what filling and emptying a tile costs.
constexpr double kLaunchSeconds = 5e-6;
constexpr double kLeastInner = 1024;  ///< Of a part of an inner length that several units share.

/// Units that share each tile's inner length, where there are fewer tiles than half of the units.
double shares_of(double tiles, double units, double inner) {
  if (2 * tiles > units) return 1;
  return std::clamp(std::floor(units / tiles), 1.0, std::max(1.0, std::floor(inner / kLeastInner)));
}

}  // namespace

BlockTimes::BlockTimes(const ModelShape& shape, const Machine& machine, const TrainLayout& layout,
                       const AchievedParts& achieved)
    : shape_(shape),
      machine_(machine),
      layout_(layout),
      achieved_(achieved),
      groups_(machine, achieved),
      tensor_(static_cast<double>(layout.tensor)) {
  const bool is_f8 = layout.type == MatrixType::kF8;
  const bool is_f32 = layout.type == MatrixType::kF32;
  const Accelerator& device = machine.accelerator;
  half_rate_ = (is_f32 ? device.f32_flops : device.f16_flops) * achieved.matrix;
  matrix_rate_ = device.flops(layout.type) * achieved.matrix * (is_f8 ? achieved.f8 : 1);
  memory_rate_ = device.memory_bytes_per_s * achieved.memory;
  element_bytes_ = is_f32 ? 4 : 2;
}

double BlockTimes::product_s(const MatrixProduct& product, double flops) const {
  // The fastest kind of tile: larger ones read less per operation, smaller ones leave fewer units idle in the last wave.
  const double units = machine_.accelerator.num_units;
  double compute = std::numeric_limits<double>::infinity();
  for (const Tile& tile : kTiles) {
    const double tiles = std::ceil(product.m / tile.rows) * std::ceil(product.n / tile.columns);
    const double shares = shares_of(tiles, units, product.k);
    const double work = std::ceil(tiles * shares / units) * units * tile.rows * tile.columns;
    const double inner = product.k / shares + kProductStart;
    compute = std::min(compute, 2 * work * inner / flops / tile.speed);
  }
  return std::max(compute, memory_s(element_bytes_ * product.elements)) + kLaunchSeconds;
}

void BlockTimes::add_product(BlockTime& time, const MatrixProduct& product, double flops) const {
  time.forward_s += product_s(product, flops);
  time.backward_s += product_s({product.m, product.k, product.n, product.elements}, flops) +
                     product_s({product.n, product.k, product.m, product.elements}, flops);
}

double BlockTimes::score_bytes_s(double queries, double keys) const {
  // Softmax reads and writes scores, dropout too, and products write and read them: 13 bytes of 16-bit values and mask.
  const double bytes = shape_.has_dropout ? 13 : 8;
  const double sequence =
      static_cast<double>(layout_.seq_len) / static_cast<double>(layout_.context);
  const double samples = queries / sequence;
  const double heads = static_cast<double>(shape_.heads) / tensor_;
  return memory_s(samples * heads * sequence * keys * bytes * element_bytes_ / 2);
}

void BlockTimes::add_attention(BlockTime& time, double queries, double keys) const {
  const double inner = static_cast<double>(shape_.heads * shape_.head_size) / tensor_;
  const double flops = 4 * queries * keys * inner;
  if (layout_.has_fused_attention) {
    // Masked halves of scores are left out.
    const double part = shape_.family == ModelFamily::kGpt ? 0.5 : 1.0;
    const double forward = part * flops / (half_rate_ * achieved_.fused_attention);
    time.forward_s += forward;
    time.backward_s += achieved_.attention_backward * forward;
    return;
  }
  // Heads of a size that is no multiple of 16 bytes leave the tensor units half empty (NVIDIA's guide to matrix products).
  const double aligned =
      shape_.head_size * static_cast<std::int64_t>(element_bytes_) % 16 == 0 ? 1 : 0.25;
  const double forward = flops / (half_rate_ * achieved_.score_products * aligned);
  const double small = score_bytes_s(queries, keys);
  time.forward_s += forward + small;
  time.backward_s += 2 * forward + achieved_.small_backward * small;
}

void BlockTimes::add_feed_forward(BlockTime& time, double tokens) const {
  const auto hidden = static_cast<double>(shape_.hidden);
  const double ffn = static_cast<double>(shape_.ffn) / tensor_;
  const double wide = (shape_.is_gated ? 2 : 1) * ffn;
  double rows = tokens;
  double count = 1;
  if (shape_.experts > 1) {
    count = static_cast<double>(shape_.experts);
    rows = tokens * static_cast<double>(shape_.active_experts) / count;
  }
  BlockTime one;
  add_product(one, {rows, wide, hidden}, matrix_rate_);
  add_product(one, {rows, hidden, ffn}, matrix_rate_);
  time.forward_s += count * one.forward_s;
  time.backward_s += count * one.backward_s;
}

void BlockTimes::add_small_operators(BlockTime& time, double tokens, bool is_decoder) const {
  const auto hidden = static_cast<double>(shape_.hidden);
  const double shared = layout_.has_sequence_parallel ? tensor_ : 1;
  const double ffn = static_cast<double>(shape_.ffn * shape_.active_experts);
  // Bytes a token where elements have two: norms 8, biases with dropout and residual 14 (12 without dropout), transpositions of
  // queries, keys, values 12, the activation between the products 4 (gated 6).
  const double residual = shape_.has_dropout ? 14 : 12;
  const double attentions = is_decoder ? 1.5 : 1;
  double bytes = (8 + residual) * hidden / shared * attentions +
                 12 * hidden / tensor_ * attentions + (shape_.is_gated ? 6.0 : 4.0) * ffn / tensor_;
  bytes *= tokens * element_bytes_ / 2;
  const double forward = memory_s(bytes) * (layout_.is_eager ? achieved_.eager : 1);
  time.forward_s += forward;
  time.backward_s += achieved_.small_backward * forward;
}

void BlockTimes::add_collectives(BlockTime& time, double tokens, bool is_decoder) const {
  const double bytes = tokens * static_cast<double>(shape_.hidden) * element_bytes_;
  const double seconds = (is_decoder ? 3 : 2) * groups_.all_reduce_s({layout_.tensor, 1}, bytes) *
                         (layout_.is_overlapped ? achieved_.hidden_tensor : 1);
  time.forward_comm_s += seconds;
  time.backward_comm_s += seconds;
  if (layout_.context > 1) {
    // Keys and values go round the context group; its part of attention hides most of them.
    const double kv = 2 * static_cast<double>(shape_.kv_heads * shape_.head_size) / tensor_;
    const double part = layout_.is_overlapped ? achieved_.hidden_sharding : 1;
    const double ring = part * groups_.gather_s({layout_.context, layout_.tensor},
                                                kv * tokens * element_bytes_ *
                                                    static_cast<double>(layout_.context));
    time.forward_comm_s += ring;
    time.backward_comm_s += 2 * ring;
  }
}

void BlockTimes::add_sharding(BlockTime& time, double num_parameters) const {
  const double mine = num_parameters / tensor_;
  constexpr double kSumBytes = 10;  // Of 16 bits read, of 32 bits read and written.
  time.backward_s += achieved_.weight_sums * memory_s(kSumBytes * mine);
  if (layout_.sharding < ShardingKind::kGradients) return;
  const CollectiveGroup group{layout_.data * layout_.context, layout_.tensor};
  time.gather_s = groups_.gather_s(group, 2 * mine);
  time.scatter_s = groups_.gather_s(group, 2 * mine);
}

void BlockTimes::add_recompute(BlockTime& time, double products_s, double score_s) const {
  switch (layout_.recompute) {
    case RecomputeKind::kNone:
      return;
    case RecomputeKind::kSelective:
      if (!layout_.has_fused_attention) time.recompute_s = score_s;
      return;
    case RecomputeKind::kHalf:
      time.recompute_s = time.forward_s - score_s - products_s / 2;
      return;
    case RecomputeKind::kFull:
      time.recompute_s = time.forward_s;
      time.backward_comm_s += time.forward_comm_s;
      return;
  }
}

BlockTime BlockTimes::transformer_block(bool is_decoder) const {
  const auto hidden = static_cast<double>(shape_.hidden);
  const double inner = static_cast<double>(shape_.heads * shape_.head_size) / tensor_;
  const double kv = static_cast<double>(shape_.kv_heads * shape_.head_size) / tensor_;
  const double encoder_tokens = layout_.tokens();
  const auto encoder_keys = static_cast<double>(layout_.seq_len);
  double tokens = encoder_tokens, keys = encoder_keys;
  if (is_decoder) {
    keys = static_cast<double>(shape_.decoder_seq_len);
    tokens *= keys / encoder_keys;
  }
  BlockTime time;
  add_product(time, {tokens, inner + 2 * kv, hidden}, matrix_rate_);
  add_product(time, {tokens, hidden, inner}, matrix_rate_);
  BlockTime scores;
  add_attention(scores, tokens, keys);
  if (is_decoder) {
    add_product(time, {tokens, inner, hidden}, matrix_rate_);
    add_product(time, {encoder_tokens, 2 * kv, hidden}, matrix_rate_);
    add_product(time, {tokens, hidden, inner}, matrix_rate_);
    add_attention(scores, tokens, encoder_keys);
  }
  add_feed_forward(time, tokens);
  const double products_s = time.forward_s;
  time.forward_s += scores.forward_s;
  time.backward_s += scores.backward_s;
  add_small_operators(time, tokens, is_decoder);
  add_collectives(time, tokens, is_decoder);
  add_recompute(time, products_s, scores.forward_s);
  add_sharding(time, static_cast<double>(is_decoder ? decoder_block_parameters(shape_)
                                                    : block_parameters(shape_)));
  return time;
}

BlockTime BlockTimes::residual_block(int index) const {
  BlockTime time;
  double num_parameters = 0;
  const auto images = static_cast<double>(layout_.microbatch);
  const double scale =
      static_cast<double>(layout_.seq_len) / 224;  // Of sides, for images of another size.
  for (const Convolution& one : shape_.convolutions) {
    if (one.block != index) continue;
    const double pixels = std::pow(static_cast<double>(one.size) * scale, 2) * images;
    const auto in = static_cast<double>(one.in), out = static_cast<double>(one.out);
    const double inner = in * static_cast<double>(one.kernel * one.kernel);
    add_product(time, {pixels, out, inner, pixels * (in + out) + inner * out}, matrix_rate_);
    // Batch norm reads twice and writes; ReLU in it, or reads and writes too.
    const double passes = layout_.is_eager ? 5 : 3;
    const double small = memory_s(passes * pixels * out * element_bytes_);
    time.forward_s += small;
    time.backward_s += achieved_.small_backward * small;
    num_parameters += static_cast<double>(one.in * one.out * one.kernel * one.kernel);
  }
  add_recompute(time, time.forward_s, 0);
  add_sharding(time, num_parameters);
  return time;
}

BlockTime BlockTimes::block(std::int64_t index) const {
  if (!shape_.is_transformer()) return residual_block(static_cast<int>(index));
  return transformer_block(index >= shape_.layers);
}

BlockTime BlockTimes::head() const {
  BlockTime time;
  if (!shape_.is_transformer()) {
    const auto inner = static_cast<double>(shape_.convolutions.back().out);
    add_product(
        time, {static_cast<double>(layout_.microbatch), static_cast<double>(shape_.classes), inner},
        half_rate_);
    return time;
  }
  double tokens = layout_.tokens();
  if (shape_.decoder_layers > 0) {
    tokens *= static_cast<double>(shape_.decoder_seq_len) / static_cast<double>(layout_.seq_len);
  }
  const double columns = static_cast<double>(shape_.vocab) / tensor_;
  add_product(time, {tokens, columns, static_cast<double>(shape_.hidden)}, half_rate_);
  // Logits become f32; maximum, exponentials, sum and gradient read and write them: 24 bytes each.
  const double loss = memory_s(24 * tokens * columns);
  time.forward_s += loss / 2;
  time.backward_s += loss / 2;
  return time;
}

double BlockTimes::update_s(double num_parameters) const {
  // Adam: gradient 2 + 4, scaling and clipping 8, parameter and both moments 16 read and 12 written, the 16-bit copy: 50 bytes.
  constexpr double kBytes = 50;
  return memory_s(kBytes * num_parameters);
}

}  // namespace trireme::analytic
