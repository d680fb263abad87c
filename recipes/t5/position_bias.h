#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

#include "recipes/t5/config.h"

namespace trireme::recipes::t5 {

enum class Direction : std::uint8_t {
  kBoth,    ///< Keys before and after the query have buckets of their own.
  kBefore,  ///< Keys after the query are not seen.
};

/// Which bucket each distance falls into. With n buckets per direction (half of them all for
/// kBoth), distances below n/2 have one each; those above are spread by their logarithm:
///
///     n/2 + floor(log(distance / (n/2)) / log(max_distance / (n/2)) * n/2), at most n - 1.
///
/// distance   key position - query position, any shape, i64. Later keys have the upper half of the
///            buckets for kBoth; bucket 0 for kBefore.
torch::Tensor position_buckets(const torch::Tensor& distance, const Config& config,
                               Direction direction);

/// What attention scores gain by the distance between key and query, per head. Made once and used
/// by all layers of a stack.
///
/// Source   Raffel et al., JMLR 21 (2020), section 2.1.
class PositionBiasImpl : public torch::nn::Module {
 public:
  PositionBiasImpl(const Config& config, Direction direction);

  /// Dense [heads, T, T] for T queries and T keys; -inf where a key is not seen. Depends on no
  /// sample, and only on cheap nodes: a plan may make it again instead of sending it.
  torch::Tensor forward(std::int64_t positions);

  torch::nn::Embedding table{nullptr};  ///< [buckets, heads].

 private:
  Config config_;
  Direction direction_;
};
TORCH_MODULE(PositionBias);

}  // namespace trireme::recipes::t5
