#include "recipes/t5/feed_forward.h"

#include <torch/types.h>

#include <cmath>

#include "packs/text/operators/drop.h"

namespace trireme::recipes::t5 {

FeedForwardImpl::FeedForwardImpl(const Config& config) : config_(config) {
  const ProjectionPart bent{config.d_ff, std::pow(config.d_model, -0.5)};
  const ProjectionPart all{config.d_model, std::pow(config.d_ff, -0.5)};
  std::vector<ProjectionPart> parts = {bent};
  if (config.variant == Variant::kV11) parts.push_back(bent);
  input_ = register_module("input", Projection(config.d_model, parts));
  output_ = register_module("output", Projection(config.d_ff, std::vector{all}));
}

torch::Tensor FeedForwardImpl::forward(const torch::Tensor& x) {
  auto hidden = input_(x);
  if (config_.variant == Variant::kV11) {
    const auto parts = hidden.chunk(2, -1);
    hidden = torch::gelu(parts[0], "tanh") * parts[1];
  } else {
    hidden = hidden.relu_();
  }
  return output_(text::drop(hidden, config_.dropout, is_training()));
}

}  // namespace trireme::recipes::t5
