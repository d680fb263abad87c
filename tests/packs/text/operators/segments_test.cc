#include "packs/text/operators/segments.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <vector>

#include "packs/text/operators/attention.h"

namespace trireme::text {
namespace {

using Tensors = std::vector<at::Tensor>;

constexpr std::int64_t kRows = 2, kRow = 12, kHeads = 2, kWidth = 4;

/// Two rows as data::pack makes them: 5 and 4 tokens, then 3 of padding; 12 tokens.
const at::Tensor& sample_lengths() {
  static const at::Tensor kLengths = torch::tensor({{5, 4, 0}, {12, 0, 0}}, torch::kInt);
  return kLengths;
}

at::Tensor segments() {
  at::Tensor made = torch::zeros({kRows, kRow}, torch::kInt);
  made.index_put_({0, torch::indexing::Slice(0, 5)}, 1);
  made.index_put_({0, torch::indexing::Slice(5, 9)}, 2);
  made.index_put_({1}, 1);
  return made;
}

/// Of each sample among the tokens of both rows.
const std::vector<std::pair<std::int64_t, std::int64_t>> kSamples = {{0, 5}, {5, 9}, {12, 24}};

Tensors queries_keys_values() {
  torch::manual_seed(8);
  Tensors x;
  for (int i = 0; i < 3; ++i) {
    x.push_back(torch::randn({kRows * kRow, kHeads, kWidth}).requires_grad_());
  }
  return x;
}

TEST(Segments, OffsetsAreOfSamplesAndOfPadding) {
  const at::Tensor offsets = segment_offsets(sample_lengths(), kRow);
  EXPECT_TRUE(torch::equal(offsets, torch::tensor({0, 5, 9, 9, 12, 24, 24, 24, 24}, torch::kLong)))
      << offsets;
}

/// Outputs and gradients of each sample have the bits that it has alone.
TEST(Segments, RowsHaveTheBitsOfEachSampleAlone) {
  const Tensors x = queries_keys_values();
  const at::Tensor slope = torch::randn_like(x[0]);
  for (const bool is_causal : {false, true}) {
    const AttentionOptions options{.is_causal = is_causal};
    const at::Tensor out =
        packed_attention(x[0], x[1], x[2], segment_offsets(sample_lengths(), kRow), options);
    const Tensors gradients = torch::autograd::grad({out}, x, {slope});
    for (const auto& [begin, end] : kSamples) {
      Tensors alone;
      for (const at::Tensor& one : x) {
        alone.push_back(one.detach().slice(0, begin, end).unsqueeze(0).requires_grad_());
      }
      const at::Tensor own = attention(alone[0], alone[1], alone[2], options);
      EXPECT_TRUE(torch::equal(own[0], out.slice(0, begin, end)));
      const Tensors of_own =
          torch::autograd::grad({own}, alone, {slope.slice(0, begin, end).unsqueeze(0)});
      for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_TRUE(torch::equal(of_own[i][0], gradients[i].slice(0, begin, end))) << i;
      }
    }
  }
}

/// Plain attention by the bias is that of packed_attention; padding makes no NaN.
TEST(Segments, TheBiasKeepsSamplesApart) {
  const Tensors x = queries_keys_values();
  const auto heads = [](const at::Tensor& one) {
    return one.view({kRows, kRow, kHeads, kWidth}).transpose(1, 2);
  };
  const at::Tensor scores = torch::matmul(heads(x[0]), heads(x[1]).transpose(2, 3)) / 2 +
                            segment_bias(segments(), segments());
  const at::Tensor mixed = torch::matmul(torch::softmax(scores, -1), heads(x[2]));
  const at::Tensor expected =
      packed_attention(x[0], x[1], x[2], segment_offsets(sample_lengths(), kRow), {});
  EXPECT_TRUE(torch::allclose(mixed.transpose(1, 2).flatten(0, 1), expected, 1e-5, 1e-6));
  const at::Tensor crossed = segment_bias(segments().slice(1, 0, 7), segments());
  EXPECT_EQ(crossed.sizes(), (at::IntArrayRef{kRows, 1, 7, kRow}));
}

// The lowest f32 would be infinite in bf16, and a softmax of nothing but that is NaN.
TEST(Segments, QueriesWithoutKeysMakeNoNan) {
  const at::Tensor bias = segment_bias(torch::full({kRows, 3}, 9, torch::kInt), segments());
  for (const at::ScalarType type : {torch::kFloat, torch::kBFloat16}) {
    at::Tensor scores = torch::full({kRows, 1, 3, kRow}, -1e4).to(type);
    scores += bias;
    EXPECT_TRUE(torch::isfinite(torch::softmax(scores, -1)).all().item<bool>()) << type;
  }
}

}  // namespace
}  // namespace trireme::text
