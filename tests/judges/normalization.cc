#include <vector>

#include "tests/judges/judge.h"
#include "trireme/kernels/normalization/batch_norm.h"

namespace trireme::judges {
namespace {

/// x, residual, gradient_y [N, C, S] or, with channels_last, [N, S, C]; gamma, beta [C]
Tensors batch_norm(const Tensors& inputs) {
  const auto& sizes = inputs.at("x").shape;
  const bool is_last = inputs.number("channels_last") != 0;
  const kernels::BatchNormShape shape{sizes[0], sizes[is_last ? 2 : 1], sizes[is_last ? 1 : 2],
                                      is_last};
  const bool has_relu = inputs.number("has_relu") != 0;
  const auto of = [&](const char* name) {
    return inputs.has(name) ? inputs.get<float>(name).data() : nullptr;
  };
  Tensors outputs;
  const auto add = [&](const char* name, const std::vector<std::int64_t>& made) {
    return outputs.add<float>(name, made).data();
  };
  std::vector<std::uint16_t> mask(kernels::mask_words(shape));
  std::uint16_t* kept = has_relu ? mask.data() : nullptr;
  double count = 0;
  const kernels::BatchNormStatistics statistics{add("mean", {shape.channels}),
                                                add("inverse_deviation", {shape.channels}), &count};
  kernels::batch_norm_forward({.has_relu = has_relu}, shape,
                              {.x = of("x"),
                               .residual = of("residual"),
                               .gamma = of("gamma"),
                               .beta = of("beta"),
                               .y = add("y", sizes),
                               .mask = kept,
                               .statistics = statistics});
  kernels::batch_norm_backward(shape, {.gradient_y = of("gradient_y"),
                                       .x = of("x"),
                                       .gamma = of("gamma"),
                                       .mask = kept,
                                       .statistics = statistics,
                                       .gradient_x = add("gradient_x", sizes),
                                       .gradient_residual = add("gradient_residual", sizes),
                                       .gradient_gamma = add("gradient_gamma", {shape.channels}),
                                       .gradient_beta = add("gradient_beta", {shape.channels})});
  return outputs;
}

}  // namespace

void add_normalization(Operations& operations) { operations["batch_norm"] = batch_norm; }

}  // namespace trireme::judges
