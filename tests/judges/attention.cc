#include "packs/text/kernels/attention.h"

#include "tests/judges/judge.h"

namespace trireme::judges {
namespace {

/// q, k, v, gradient_out [tokens, H, d], offsets [B + 1], perhaps bias [H, S, S]; option is_causal
///     -> out, gradient_q, gradient_k, gradient_v as q, log_sum [tokens, H]
Tensors attention(const Tensors& inputs) {
  const auto& sizes = inputs.at("q").shape;
  const auto of = [&](const char* name) { return inputs.get<float>(name).data(); };
  const text::AttentionShape shape{inputs.get<std::int64_t>("offsets"), sizes[1], sizes[2]};
  text::AttentionSettings options{.is_causal = inputs.number("is_causal") != 0};
  if (inputs.has("bias")) {
    options.bias = of("bias");
    options.bias_length = inputs.at("bias").shape[1];
  }
  Tensors outputs;
  const auto add = [&](const char* name) { return outputs.add<float>(name, sizes).data(); };
  float* log_sum = outputs.add<float>("log_sum", {sizes[0], sizes[1]}).data();
  float* out = add("out");
  text::attention(shape, options, of("q"), of("k"), of("v"), out, log_sum);
  text::attention_backward(shape, options,
                           {.q = of("q"),
                            .k = of("k"),
                            .v = of("v"),
                            .out = out,
                            .log_sum = log_sum,
                            .gradient_out = of("gradient_out"),
                            .gradient_q = add("gradient_q"),
                            .gradient_k = add("gradient_k"),
                            .gradient_v = add("gradient_v")});
  return outputs;
}

}  // namespace

void add_attention(Operations& operations) { operations["attention"] = attention; }

}  // namespace trireme::judges
