#include "packs/text/operators/attention.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <optional>
#include <tuple>
#include <vector>

#include "packs/text/kernels/attention.h"
#include "trireme/engine/operators/kernel_operator.h"

namespace trireme::text {
namespace {

using operators::internal::BelowAutograd;
using operators::internal::Expect;
using operators::internal::find_operator;
using operators::internal::given;
using operators::internal::kernel_below_autograd;
using operators::internal::under_autocast;
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
  expect.shape("key", key, query.sym_sizes());
  expect.shape("value", value, query.sym_sizes());
  expect.probability("drop_probability", drop_probability);
}

void check(const Expect& expect, const at::Tensor& query, const at::Tensor& offsets,
           const MaybeTensor& bias) {
  expect.dtype("offsets", offsets, {at::kLong, at::kInt});
  expect.dims("offsets", offsets, 1);
  if (!bias) return;
  expect.dtype("bias", *bias, {at::kFloat});
  expect.no_gradient("bias", *bias);
  expect.dims("bias", *bias, 3);
  expect.shape("bias", *bias, {query.sym_size(1), bias->sym_size(1), bias->sym_size(1)});
}

void check_end(const std::vector<std::int64_t>& offsets, std::int64_t num_tokens, bool has_rest) {
  if (!offsets.empty() && (has_rest || offsets.back() == num_tokens)) return;
  Expect("packed_attention")
      .fail("offsets must end with the number of tokens, " + std::to_string(num_tokens) +
            ", end with " + (offsets.empty() ? "nothing" : std::to_string(offsets.back())));
}

/// Like `like`, 0 in rows that no sequence has.
at::Tensor empty_rows(const at::Tensor& like, std::int64_t num_tokens) {
  at::Tensor rows = at::empty_like(like);
  rows.slice(0, num_tokens).zero_();
  return rows;
}

/// The result, and what its gradient needs: log sums and the seed of the dropout.
using Made = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

/// has_rest   there may be rows behind the last sequence, which become 0.
Made forward_kernel(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                    const at::Tensor& offsets, const MaybeTensor& bias, bool is_causal,
                    double drop_probability, bool has_rest) {
  const std::uint64_t seed = drop_probability > 0 ? operators::internal::draw_seed() : 0;
  const at::Tensor q = query.contiguous(), k = key.contiguous(), v = value.contiguous();
  Call call(q, offsets, bias ? bias->contiguous() : at::Tensor());
  check_end(call.offsets, q.size(0), has_rest);
  call.options.is_causal = is_causal;
  call.options.drop_probability = drop_probability;
  call.options.seed = seed;
  const at::Tensor out = empty_rows(q, call.offsets.back());
  const at::Tensor log_sum = at::empty({q.size(0), q.size(1)}, q.options());
  attention(call.shape, call.options, q.const_data_ptr<float>(), k.const_data_ptr<float>(),
            v.const_data_ptr<float>(), out.mutable_data_ptr<float>(),
            log_sum.mutable_data_ptr<float>(), operators::internal::on_torch_threads);
  return {out, log_sum, at::full({1}, static_cast<std::int64_t>(seed), at::kLong)};
}

Made backward_kernel(const at::Tensor& given_gradient, const at::Tensor& query,
                     const at::Tensor& key, const at::Tensor& value, const at::Tensor& offsets,
                     const MaybeTensor& bias, const at::Tensor& out, const at::Tensor& log_sum,
                     const at::Tensor& seed, bool is_causal, double drop_probability) {
  const at::Tensor q = query.contiguous(), k = key.contiguous(), v = value.contiguous();
  const at::Tensor gradient = given_gradient.contiguous();
  Call call(q, offsets, bias ? bias->contiguous() : at::Tensor());
  call.options.is_causal = is_causal;
  call.options.drop_probability = drop_probability;
  call.options.seed = static_cast<std::uint64_t>(*seed.const_data_ptr<std::int64_t>());
  const std::int64_t num_tokens = call.offsets.back();
  const at::Tensor dq = empty_rows(q, num_tokens), dk = empty_rows(k, num_tokens);
  const at::Tensor dv = empty_rows(v, num_tokens);
  attention_backward(call.shape, call.options,
                     {.q = q.const_data_ptr<float>(),
                      .k = k.const_data_ptr<float>(),
                      .v = v.const_data_ptr<float>(),
                      .out = out.const_data_ptr<float>(),
                      .log_sum = log_sum.const_data_ptr<float>(),
                      .gradient_out = gradient.const_data_ptr<float>(),
                      .gradient_q = dq.mutable_data_ptr<float>(),
                      .gradient_k = dk.mutable_data_ptr<float>(),
                      .gradient_v = dv.mutable_data_ptr<float>()},
                     operators::internal::on_torch_threads);
  return {dq, dk, dv};
}

class PackedAttention : public torch::autograd::Function<PackedAttention> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& query,
                            const at::Tensor& key, const at::Tensor& value,
                            const at::Tensor& offsets, const MaybeTensor& bias, bool is_causal,
                            double drop_probability, bool has_rest) {
    static const auto op = find_operator<decltype(forward_kernel)>("trireme::_packed_attention");
    const at::Tensor q = query.contiguous(), k = key.contiguous(), v = value.contiguous();
    const auto [out, log_sum, seed] = [&] {
      const BelowAutograd below;
      return op.call(q, k, v, offsets, bias, is_causal, drop_probability, has_rest);
    }();
    context->save_for_backward({q, k, v, offsets, bias ? *bias : at::Tensor(), out, log_sum, seed});
    context->saved_data["is_causal"] = is_causal;
    context->saved_data["drop_probability"] = drop_probability;
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    static const auto op =
        find_operator<decltype(backward_kernel)>("trireme::_packed_attention_backward");
    const auto saved = context->get_saved_variables();
    const auto [dq, dk, dv] = [&] {
      const BelowAutograd below;
      return op.call(gradients[0], saved[0], saved[1], saved[2], saved[3], given(saved[4]),
                     saved[5], saved[6], saved[7], context->saved_data["is_causal"].toBool(),
                     context->saved_data["drop_probability"].toDouble());
    }();
    return operators::internal::once_differentiable("attention", {dq, dk, dv, {}, {}, {}, {}, {}});
  }
};

/// Of tokens behind each other, in f32.
at::Tensor attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                  const at::Tensor& offsets, const MaybeTensor& bias, bool is_causal,
                  double drop_probability, bool has_rest) {
  const auto wide = [](const at::Tensor& tensor) { return tensor.to(at::kFloat); };
  return PackedAttention::apply(wide(query), wide(key), wide(value), offsets, bias, is_causal,
                                drop_probability, has_rest)
      .to(query.scalar_type());
}

at::Tensor run_packed(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                      const at::Tensor& offsets, const MaybeTensor& bias, bool is_causal,
                      double drop_probability) {
  const Expect expect("packed_attention");
  check(expect, query, key, value, 3, drop_probability);
  check(expect, query, offsets, bias);
  return attend(query, key, value, offsets, bias, is_causal, drop_probability, false);
}

/// The rows of [B, S] that are tokens, then those that are padding; where sequences begin.
std::tuple<at::Tensor, at::Tensor> order_tokens(const at::Tensor& lengths, std::int64_t length) {
  std::vector<std::int64_t> rows, padding, offsets = {0};
  for (const std::int64_t own : operators::internal::to_int64(lengths)) {
    const auto sequence = static_cast<std::int64_t>(offsets.size()) - 1;
    if (own < 0 || own > length) {
      Expect("attention")
          .fail("lengths[" + std::to_string(sequence) + "] must be in [0, " +
                std::to_string(length) + "], is " + std::to_string(own));
    }
    for (std::int64_t i = 0; i < own; ++i) rows.push_back(sequence * length + i);
    for (std::int64_t i = own; i < length; ++i) padding.push_back(sequence * length + i);
    offsets.push_back(std::ssize(rows));
  }
  rows.insert(rows.end(), padding.begin(), padding.end());
  return {at::tensor(rows, at::kLong), at::tensor(offsets, at::kLong)};
}

at::Tensor run_padded(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                      const MaybeTensor& lengths, const MaybeTensor& bias, bool is_causal,
                      double drop_probability) {
  using OrderTokens = std::tuple<at::Tensor, at::Tensor>(const at::Tensor&, c10::SymInt);
  static const auto order = find_operator<OrderTokens>("trireme::_order_tokens");
  const Expect expect("attention");
  check(expect, query, key, value, 4, drop_probability);
  const c10::SymInt num_sequences = query.sym_size(0), length = query.sym_size(1);
  const auto flat = [](const at::Tensor& tensor) { return tensor.flatten(0, 1); };
  if (!lengths) {
    const at::Tensor offsets = at::arange(num_sequences + 1, at::kLong).mul(c10::Scalar(length));
    check(expect, flat(query), offsets, bias);
    return attend(flat(query), flat(key), flat(value), offsets, bias, is_causal, drop_probability,
                  false)
        .view_symint(query.sym_sizes());
  }
  expect.dtype("lengths", *lengths, {at::kLong, at::kInt});
  expect.shape("lengths", *lengths, {num_sequences});
  const auto [rows, offsets] = order.call(*lengths, length);
  check(expect, flat(query), offsets, bias);
  const auto picked = [&, &rows = rows](const at::Tensor& tensor) {
    return flat(tensor).index_select(0, rows);
  };
  const at::Tensor out = attend(picked(query), picked(key), picked(value), offsets, bias, is_causal,
                                drop_probability, true);
  return at::zeros_like(flat(query)).index_copy(0, rows, out).view_symint(query.sym_sizes());
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
  library.def(
      "_packed_attention(Tensor query, Tensor key, Tensor value, Tensor offsets, Tensor? bias, "
      "bool is_causal, float drop_probability, bool has_rest) "
      "-> (Tensor out, Tensor log_sum, Tensor seed)",
      draws);
  library.impl("_packed_attention", kernel_below_autograd(forward_kernel));
  library.def(
      "_packed_attention_backward(Tensor gradient, Tensor query, Tensor key, Tensor value, "
      "Tensor offsets, Tensor? bias, Tensor out, Tensor log_sum, Tensor seed, bool is_causal, "
      "float drop_probability) -> (Tensor dquery, Tensor dkey, Tensor dvalue)");
  library.impl("_packed_attention_backward", kernel_below_autograd(backward_kernel));
  library.def("_order_tokens(Tensor lengths, SymInt length) -> (Tensor rows, Tensor offsets)");
  library.impl("_order_tokens", kernel_below_autograd(order_tokens));
}

TORCH_LIBRARY_IMPL(trireme, AutocastCPU, library) {
  library.impl("packed_attention", under_autocast(3));
  library.impl("attention", under_autocast(3));
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
