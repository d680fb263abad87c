#include "recipes/t5/position_bias.h"

#include <torch/nn/init.h>
#include <torch/types.h>

#include <cmath>
#include <limits>

namespace trireme::recipes::t5 {

torch::Tensor position_buckets(const torch::Tensor& distance, const Config& config,
                               Direction direction) {
  const bool both = direction == Direction::kBoth;
  const std::int64_t n = both ? config.buckets / 2 : config.buckets;
  const std::int64_t exact = n / 2;
  const auto apart = both ? distance.abs() : distance.neg().clamp_min(0);
  const auto far = torch::log(apart.clamp_min(1).to(torch::kFloat) / static_cast<double>(exact)) /
                   std::log(static_cast<double>(config.max_distance) / static_cast<double>(exact)) *
                   static_cast<double>(n - exact);
  const auto spread = (far.to(torch::kLong) + exact).clamp_max(n - 1);
  const auto bucket = torch::where(apart < exact, apart, spread);
  return both ? bucket + (distance > 0) * n : bucket;
}

PositionBiasImpl::PositionBiasImpl(const Config& config, Direction direction)
    : config_(config), direction_(direction) {
  table = register_module("table", torch::nn::Embedding(config.buckets, config.heads));
  torch::nn::init::normal_(table->weight, 0, std::pow(config.d_model, -0.5));
}

// The bias is a band matrix: row t holds the biases of distances -t .. T-1-t. So a table over the
// 2T-1 distances is enough, and row t is the window of length T that begins at distance -t. The
// mask costs 2T-1 comparisons instead of T x T.
torch::Tensor PositionBiasImpl::forward(std::int64_t positions) {
  const std::int64_t T = positions;
  const auto distance = torch::arange(1 - T, T);
  // Dense [heads, 2T-1], so that the result is dense too: it is added to scores in each layer.
  auto bias = table(position_buckets(distance, config_, direction_)).t().contiguous();
  if (direction_ == Direction::kBefore) {
    bias = bias.masked_fill(distance > 0, -std::numeric_limits<double>::infinity());
  }
  return bias.unfold(1, T, 1).flip({1});
}

}  // namespace trireme::recipes::t5
