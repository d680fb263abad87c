#include "packs/text/operators/attention.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <optional>

#include "packs/text/kernels/attention.h"
#include "trireme/engine/operators/kernel_operator.h"

namespace trireme::text {
namespace {

using operators::internal::Expect;
using operators::internal::given;
using MaybeTensor = std::optional<at::Tensor>;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// One call's sizes and options, for forward and backward.
struct Call {
  std::vector<std::int64_t> offsets;
  at::Tensor bias;
  AttentionShape shape;
  AttentionSettings options;

  Call(const at::Tensor& query, const at::Tensor& given_offsets, at::Tensor given_bias)
      : offsets(operators::internal::to_int64(given_offsets)), bias(std::move(given_bias)) {
    shape = {.offsets = offsets, .num_heads = query.size(1), .width = query.size(2)};
    if (!bias.defined()) return;
    options.bias = bias.const_data_ptr<float>();
    options.bias_length = bias.size(1);
  }
};

void check(const Expect& expect, const at::Tensor& query, const at::Tensor& key,
           const at::Tensor& value, std::int64_t num_dims, double drop_probability) {
  expect.dtype("query", query, {at::kFloat, at::kBFloat16});
  expect.dtype("key", key, {query.scalar_type()});
  expect.dtype("value", value, {query.scalar_type()});
  expect.dims("query", query, num_dims);
  expect.shape("key", key, query.sizes());
  expect.shape("value", value, query.sizes());
  expect.probability("drop_probability", drop_probability);
}

void check(const Expect& expect, const at::Tensor& query, const at::Tensor& offsets,
           const MaybeTensor& bias) {
  expect.dtype("offsets", offsets, {at::kLong, at::kInt});
  expect.dims("offsets", offsets, 1);
  const auto ends = operators::internal::to_int64(offsets);
  if (ends.empty() || ends.back() != query.size(0)) {
    expect.fail("offsets must end with the number of tokens, " + std::to_string(query.size(0)) +
                ", end with " + (ends.empty() ? "nothing" : std::to_string(ends.back())));
  }
  if (!bias) return;
  expect.dtype("bias", *bias, {at::kFloat});
  expect.no_gradient("bias", *bias);
  expect.dims("bias", *bias, 3);
  expect.shape("bias", *bias, {query.size(1), bias->size(1), bias->size(1)});
}

class PackedAttention : public torch::autograd::Function<PackedAttention> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& query,
                            const at::Tensor& key, const at::Tensor& value,
                            const at::Tensor& offsets, const MaybeTensor& bias, bool is_causal,
                            double drop_probability) {
    const std::uint64_t seed = drop_probability > 0 ? operators::internal::draw_seed() : 0;
    const at::Tensor q = query.contiguous(), k = key.contiguous(), v = value.contiguous();
    Call call(q, offsets, bias ? bias->contiguous() : at::Tensor());
    call.options.is_causal = is_causal;
    call.options.drop_probability = drop_probability;
    call.options.seed = seed;
    at::Tensor out = at::empty_like(q), log_sum = at::empty({q.size(0), q.size(1)}, q.options());
    attention(call.shape, call.options, q.const_data_ptr<float>(), k.const_data_ptr<float>(),
              v.const_data_ptr<float>(), out.mutable_data_ptr<float>(),
              log_sum.mutable_data_ptr<float>(), operators::internal::on_torch_threads);
    context->save_for_backward({q, k, v, offsets, call.bias, out, log_sum});
    context->saved_data["is_causal"] = is_causal;
    context->saved_data["drop_probability"] = drop_probability;
    context->saved_data["seed"] = static_cast<std::int64_t>(seed);
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &q = saved[0], &k = saved[1], &v = saved[2];
    Call call(q, saved[3], saved[4]);
    call.options.is_causal = context->saved_data["is_causal"].toBool();
    call.options.drop_probability = context->saved_data["drop_probability"].toDouble();
    call.options.seed = static_cast<std::uint64_t>(context->saved_data["seed"].toInt());
    const at::Tensor gradient = gradients[0].contiguous();
    at::Tensor dq = at::empty_like(q), dk = at::empty_like(k), dv = at::empty_like(v);
    attention_backward(call.shape, call.options,
                       {.q = q.const_data_ptr<float>(),
                        .k = k.const_data_ptr<float>(),
                        .v = v.const_data_ptr<float>(),
                        .out = saved[5].const_data_ptr<float>(),
                        .log_sum = saved[6].const_data_ptr<float>(),
                        .gradient_out = gradient.const_data_ptr<float>(),
                        .gradient_q = dq.mutable_data_ptr<float>(),
                        .gradient_k = dk.mutable_data_ptr<float>(),
                        .gradient_v = dv.mutable_data_ptr<float>()},
                       operators::internal::on_torch_threads);
    return operators::internal::once_differentiable("attention", {dq, dk, dv, {}, {}, {}, {}});
  }
};

at::Tensor attend(const Expect& expect, const at::Tensor& query, const at::Tensor& key,
                  const at::Tensor& value, const at::Tensor& offsets, const MaybeTensor& bias,
                  bool is_causal, double drop_probability) {
  check(expect, query, offsets, bias);
  const auto wide = [](const at::Tensor& tensor) { return tensor.to(at::kFloat); };
  return PackedAttention::apply(wide(query), wide(key), wide(value), offsets, bias, is_causal,
                                drop_probability)
      .to(query.scalar_type());
}

at::Tensor run_packed(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                      const at::Tensor& offsets, const MaybeTensor& bias, bool is_causal,
                      double drop_probability) {
  const Expect expect("packed_attention");
  check(expect, query, key, value, 3, drop_probability);
  return attend(expect, query, key, value, offsets, bias, is_causal, drop_probability);
}

/// Which rows of [B, S] are tokens, and where sequences begin among them.
struct Tokens {
  at::Tensor rows, offsets;
};

Tokens tokens_of(const Expect& expect, const at::Tensor& lengths, std::int64_t num_sequences,
                 std::int64_t length) {
  expect.dtype("lengths", lengths, {at::kLong, at::kInt});
  expect.shape("lengths", lengths, {num_sequences});
  std::vector<std::int64_t> rows, offsets = {0};
  for (const std::int64_t own : operators::internal::to_int64(lengths)) {
    const auto sequence = static_cast<std::int64_t>(offsets.size()) - 1;
    if (own < 0 || own > length) {
      expect.fail("lengths[" + std::to_string(sequence) + "] must be in [0, " +
                  std::to_string(length) + "], is " + std::to_string(own));
    }
    for (std::int64_t i = 0; i < own; ++i) rows.push_back(sequence * length + i);
    offsets.push_back(std::ssize(rows));
  }
  return {at::tensor(rows, at::kLong), at::tensor(offsets, at::kLong)};
}

at::Tensor run_padded(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                      const MaybeTensor& lengths, const MaybeTensor& bias, bool is_causal,
                      double drop_probability) {
  const Expect expect("attention");
  check(expect, query, key, value, 4, drop_probability);
  const std::int64_t num_sequences = query.size(0), length = query.size(1);
  const auto flat = [](const at::Tensor& tensor) { return tensor.flatten(0, 1); };
  if (!lengths) {
    const at::Tensor offsets = at::arange(num_sequences + 1, at::kLong).mul(length);
    return attend(expect, flat(query), flat(key), flat(value), offsets, bias, is_causal,
                  drop_probability)
        .view(query.sizes());
  }
  const Tokens tokens = tokens_of(expect, *lengths, num_sequences, length);
  const auto picked = [&](const at::Tensor& tensor) {
    return flat(tensor).index_select(0, tokens.rows);
  };
  const at::Tensor out = attend(expect, picked(query), picked(key), picked(value), tokens.offsets,
                                bias, is_causal, drop_probability);
  return at::zeros_like(flat(query)).index_copy(0, tokens.rows, out).view(query.sizes());
}

TORCH_LIBRARY_FRAGMENT(trireme, library) {
  const std::vector<at::Tag> draws = {at::Tag::nondeterministic_seeded};
  library.def(
      "packed_attention(Tensor query, Tensor key, Tensor value, Tensor offsets, "
      "Tensor? bias=None, bool is_causal=False, float drop_probability=0.) -> Tensor",
      draws);
  library.def(
      "attention(Tensor query, Tensor key, Tensor value, Tensor? lengths=None, "
      "Tensor? bias=None, bool is_causal=False, float drop_probability=0.) -> Tensor",
      draws);
  library.impl("packed_attention", run_packed);
  library.impl("attention", run_padded);
}

}  // namespace

at::Tensor attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const AttentionOptions& options) {
  static const auto op =
      operators::internal::find_operator<decltype(run_padded)>("trireme::attention");
  return op.call(query, key, value, given(options.lengths), given(options.bias), options.is_causal,
                 options.drop_probability);
}

at::Tensor packed_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            const at::Tensor& offsets, const AttentionOptions& options) {
  static const auto op =
      operators::internal::find_operator<decltype(run_packed)>("trireme::packed_attention");
  if (options.lengths.defined()) {
    Expect("packed_attention").fail("lengths belong to the padded form; offsets say them here");
  }
  return op.call(query, key, value, offsets, given(options.bias), options.is_causal,
                 options.drop_probability);
}

}  // namespace trireme::text
