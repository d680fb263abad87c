#pragma once

// Attention on the host, for tests, and what the processors' kernel makes of it.

#include <cstdint>
#include <vector>

#include "packs/text/cuda/attention.h"
#include "packs/text/kernels/attention.h"
#include "tests/kernels/random_numbers.h"

namespace trireme::text::cuda {

struct AttentionProblem {
  AttentionProblem(std::int64_t width, bool is_causal, double drop_probability, bool has_bias)
      : width(width),
        options{.is_causal = is_causal,
                .drop_probability = drop_probability,
                .seed = 0x123456789ABCDEF} {
    unsigned seed = 0;
    for (std::vector<float>* all : {&q, &k, &v, &gradient}) {
      *all = kernels::random_numbers<float>(num_rows() * width, ++seed, 0);
    }
    if (!has_bias) return;
    bias = kernels::random_numbers<float>(3 * 130 * 130, 9, 0);
    options.bias = bias.data();
    options.bias_length = 130;
  }
  AttentionProblem(const AttentionProblem&) = delete;
  AttentionProblem& operator=(const AttentionProblem&) = delete;

  std::int64_t num_rows() const { return offsets.back() * 3; }
  DeviceSequences sequences() const { return {offsets.data(), 5, offsets.back(), 130, 3, width}; }

  std::vector<std::int64_t> offsets = {0, 1, 1, 48, 161, 290};  // 1, 0, 47, 113, 129 tokens
  std::int64_t width;
  AttentionSettings options;
  std::vector<float> q, k, v, gradient, bias;
};

struct AttentionOutput {
  explicit AttentionOutput(const AttentionProblem& p)
      : out(p.q.size()),
        log_sum(p.num_rows()),
        gradient_q(out.size()),
        gradient_k(out.size()),
        gradient_v(out.size()) {}
  bool operator==(const AttentionOutput&) const = default;

  AttentionGradient gradient_of(const AttentionProblem& p) {
    return {p.q.data(),        p.k.data(),        p.v.data(),
            out.data(),        log_sum.data(),    p.gradient.data(),
            gradient_q.data(), gradient_k.data(), gradient_v.data()};
  }

  /// By the processors' kernel.
  static AttentionOutput of_host(const AttentionProblem& p) {
    AttentionOutput made(p);
    const AttentionShape shape{p.offsets, 3, p.width};
    text::attention(shape, p.options, p.q.data(), p.k.data(), p.v.data(), made.out.data(),
                    made.log_sum.data());
    text::attention_backward(shape, p.options, made.gradient_of(p));
    return made;
  }

  std::vector<float> out, log_sum, gradient_q, gradient_k, gradient_v;
};

}  // namespace trireme::text::cuda
