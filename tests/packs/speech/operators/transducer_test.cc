#include "packs/speech/operators/transducer.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/engine/operators/beside_torch.h"

namespace trireme::speech {
namespace {

using namespace operators;

const TransducerLengths& lengths() {
  static const TransducerLengths all{torch::tensor({6, 4, 1}, torch::kLong),
                                     torch::tensor({3, 0, 2}, torch::kLong)};
  return all;
}

at::Tensor labels() { return torch::tensor({{1, 4, 2}, {3, 3, 3}, {4, 1, 0}}, torch::kLong); }

/// 1 in the grids of the samples, [3, 6, 4, 1].
at::Tensor in_grids() {
  const auto frames = torch::arange(6).view({1, 6, 1, 1}) < lengths().num_frames.view({3, 1, 1, 1});
  const auto positions =
      torch::arange(4).view({1, 1, 4, 1}) <= lengths().num_labels.view({3, 1, 1, 1});
  return (frames & positions).to(torch::kDouble);
}

/// The loss by its definition, alpha row by row, in torch's operators.
at::Tensor torch_loss(const at::Tensor& logits, std::int64_t b) {
  const auto logp = logits[b].log_softmax(-1);
  const std::int64_t frames = lengths().num_frames[b].item<std::int64_t>();
  const std::int64_t count = lengths().num_labels[b].item<std::int64_t>();
  const at::Tensor own_labels = labels()[b];
  std::vector<at::Tensor> alpha;
  for (std::int64_t t = 0; t < frames; ++t) {
    std::vector<at::Tensor> row;
    for (std::int64_t u = 0; u <= count; ++u) {
      std::vector<at::Tensor> ways;
      if (t > 0) ways.push_back(alpha[u] + logp[t - 1][u][0]);
      if (u > 0) ways.push_back(row[u - 1] + logp[t][u - 1][own_labels[u - 1].item<int64_t>()]);
      row.push_back(ways.empty() ? torch::zeros({}, torch::kDouble)
                                 : torch::logsumexp(torch::stack(ways), 0));
    }
    alpha = row;
  }
  return -(alpha[count] + logp[frames - 1][count][0]);
}

TEST(TransducerLossOperator, IsItsDefinitionWithGradients) {
  torch::manual_seed(8);
  expect_like_torch(
      {torch::randn({3, 6, 4, 5}) * 2},
      [](const TensorList& x) { return transducer_loss(x[0], labels(), lengths()); },
      [](const TensorList& x) {
        return torch::stack({torch_loss(x[0], 0), torch_loss(x[0], 1), torch_loss(x[0], 2)});
      });
}

TEST(TransducerLossOperator, ItsGraphCanBeKept) {
  const auto logits = torch::randn({3, 6, 4, 5}).requires_grad_();
  const auto loss = transducer_loss(logits, labels(), lengths()).sum();
  loss.backward({}, true);
  const at::Tensor once = logits.grad().clone();
  logits.mutable_grad().zero_();
  loss.backward();
  EXPECT_TRUE(torch::equal(once, logits.grad()));
}

TEST(TransducerJointOperator, IsAddAndReluWithGradients) {
  expect_like_torch(
      {torch::randn({3, 6, 20}), torch::randn({3, 4, 20})},
      [](const TensorList& x) { return transducer_joint(x[0], x[1], lengths()); },
      [](const TensorList& x) {
        return at::relu(x[0].unsqueeze(2) + x[1].unsqueeze(1)) * in_grids();
      });
}

TEST(TransducerJointOperator, PackedRowsAreThePaddedOnesAndLeadToTheSameLoss) {
  const auto run = [](bool is_packed) {
    torch::manual_seed(21);
    const auto f = torch::randn({3, 6, 20}).requires_grad_();
    const auto g = torch::randn({3, 4, 20}).requires_grad_();
    const auto weight = torch::randn({20, 5});
    const auto joint =
        transducer_joint(f, g, lengths(), {.drop_probability = 0.25, .is_packed = is_packed});
    const auto loss = transducer_loss(at::matmul(joint, weight), labels(), lengths());
    loss.sum().backward();
    return TensorList{joint.detach(), loss.detach(), f.grad(), g.grad()};
  };
  const TensorList padded = run(false), packed = run(true);
  EXPECT_EQ(packed[0].size(0), 6 * 4 + 4 * 1 + 1 * 3);
  EXPECT_TRUE(torch::equal(
      padded[0].flatten(0, 2).index_select(0, in_grids().flatten().nonzero().flatten()),
      packed[0]));
  for (std::size_t i = 1; i < padded.size(); ++i) {
    EXPECT_TRUE(torch::allclose(padded[i], packed[i], 1e-5, 1e-6)) << i;
  }
}

TEST(TransducerOperators, TakeBf16) {
  const auto f = torch::randn({3, 6, 20}).to(torch::kBFloat16).requires_grad_();
  const auto g = torch::randn({3, 4, 20}).to(torch::kBFloat16);
  const auto joint = transducer_joint(f, g, lengths());
  const auto logits = joint.slice(3, 0, 5);
  const auto loss = transducer_loss(logits, labels(), lengths());
  EXPECT_EQ(joint.scalar_type(), torch::kBFloat16);
  EXPECT_TRUE(torch::allclose(loss, transducer_loss(logits.to(torch::kFloat), labels(), lengths()),
                              1e-6, 1e-6));
  loss.sum().backward();
  EXPECT_EQ(f.grad().scalar_type(), torch::kBFloat16);
}

TEST(TransducerOperators, SayWhatDoesNotFit) {
  const at::Tensor f = torch::randn({3, 6, 20}), g = torch::randn({3, 4, 20});
  expect_error([&] { transducer_joint(f, torch::randn({2, 4, 20}), lengths()); },
               "trireme::transducer_joint: g must have shape [3, 4, 20], has [2, 4, 20]");
  TransducerLengths long_ones = lengths();
  long_ones.num_frames = torch::tensor({6, 7, 1}, torch::kLong);
  expect_error([&] { transducer_joint(f, g, long_ones); }, "sample 1");
  const at::Tensor logits = torch::randn({3, 6, 4, 5});
  expect_error([&] { transducer_loss(logits, labels().slice(1, 0, 2), lengths()); },
               "trireme::transducer_loss: logits must have shape [3, 6, 3, 5]");
  expect_error([&] { transducer_loss(logits.flatten(0, 2), labels(), lengths()); },
               "packed logits must have 31 rows");
  expect_error([&] { transducer_loss(logits, labels(), lengths(), 7); }, "blank");
  long_ones.num_frames = torch::tensor({6L, 4L, (1L << 32) + 1}, torch::kLong);
  expect_error([&] { transducer_loss(logits, labels(), long_ones); },
               "num_frames[2] is 4294967297, which does not fit 32 bits");
}

}  // namespace
}  // namespace trireme::speech
