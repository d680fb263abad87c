#pragma once

#include <cstdint>
#include <string>

#include "trireme/plan/analytic/machine.h"
#include "trireme/plan/analytic/model_shape.h"

namespace trireme::analytic {

/// Most of each number of a layout, so that no product of two or three of them overflows.
inline constexpr std::int64_t kMostOfLayout = std::int64_t{1} << 20;

/// What is computed again in the backward instead of being kept.
enum class RecomputeKind : std::uint8_t {
  kNone,
  kSelective,  ///< Scores of attention.
  kHalf,       ///< What lies between products, and every second product (torchtitan's `selective`).
  kFull,       ///< All but the inputs of blocks.
};

/// What replicas have in parts (ZeRO 1 to 3, FSDP).
enum class ShardingKind : std::uint8_t {
  kNone,
  kState,       ///< Of the optimizer.
  kGradients,   ///< And gradients; values whole from forward to backward (SHARD_GRAD_OP).
  kParameters,  ///< And values: gathered for each forward and each backward (FULL_SHARD).
};

/// How a model is trained on many devices, transformers by Megatron's split: blocks over a pipeline, each block over a
/// tensor group, tokens of a sample over a context group, samples over replicas. Ranks of a tensor group are
/// neighbours, then those of a context group, replicas, stages. A mixture's experts are all on each rank.
struct TrainLayout {
  std::int64_t tensor = 1;
  std::int64_t pipeline = 1;
  std::int64_t virtual_stages = 1;  ///< Parts of the model that each stage's rank has.
  std::int64_t context = 1;
  std::int64_t data = 1;
  std::int64_t microbatch = 1;
  std::int64_t global_batch = 1;
  std::int64_t seq_len = 0;
  std::string schedule = "interleaved";  ///< Of plan/schedule.
  RecomputeKind recompute = RecomputeKind::kNone;
  ShardingKind sharding = ShardingKind::kNone;
  MatrixType type = MatrixType::kBf16;
  bool has_sequence_parallel =
      false;  ///< Norms and dropout of a tensor group each on a part of the tokens.
  bool has_fused_attention = false;  ///< Scores are not written to memory.
  bool is_eager = false;             ///< Small operators are kernels of their own.
  bool has_async_steps =
      false;  ///< The host runs ahead of the device: it takes no time between steps.
  bool keeps_f8_once =
      false;  ///< Weights of f8, of which the backward otherwise has a transposed copy.
  bool is_overlapped = false;  ///< Sums of gradients and of tensor groups run beside compute.

  std::int64_t num_devices() const { return tensor * pipeline * context * data; }
  std::int64_t num_microbatches() const { return global_batch / (data * microbatch); }
  double tokens() const {  ///< Of a microbatch, on a rank.
    return static_cast<double>(microbatch * seq_len) / static_cast<double>(context);
  }
};

/// What a layout has by default on such devices: attention, overlap.
void set_habits(const Machine& machine, TrainLayout& layout);

/// Bytes of a parameter's gradient, as replicas sum it. Megatron's optimizer in parts sums what overlaps compute in 16
/// bits: `memory_allocated` in NVIDIA/dgxc-benchmarking's logs (llama3.1 and nemotron README.md, commit 85380ff) is
/// 2 + 2 + 12 / replicas bytes a parameter, to 0.4 %. Otherwise sums of bf16 and f8 are in f32.
double gradient_bytes(const TrainLayout& layout);

/// kInvalidArgument, naming field and value and saying what would fit, where the layout cannot be.
void check(const ModelShape& shape, const TrainLayout& layout);

/// `tensor 8 x pipeline 16 x data 24, microbatch 1, ...`.
std::string to_text(const TrainLayout& layout);

}  // namespace trireme::analytic
