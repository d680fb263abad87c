// Against the T5 of Hugging Face transformers: make_parity.py wrote its numbers. The same formulas
// stand there for weights and tokens. Both compute in f64, but for the reference's norms in f32:
// gradients differ by up to 2.3e-6.

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <numeric>

#include "recipes/t5/model.h"
#include "trireme/base/files.h"
#include "trireme/base/safetensors.h"

namespace trireme::recipes::t5 {
namespace {

constexpr std::int64_t kBatch = 3;
constexpr std::int64_t kInputs = 21;
constexpr std::int64_t kTargets = 13;

Config config_of(Variant variant) {
  return {.variant = variant,
          .vocabulary = 24,
          .d_model = 8,
          .d_ff = 10,
          .d_kv = 3,
          .heads = 2,
          .encoder_layers = 2,
          .decoder_layers = 2,
          .buckets = 8,
          .max_distance = 12,
          .masks_padding = true};
}

void fill_weight(const std::string& name, torch::Tensor weight) {
  const auto begin = std::accumulate(name.begin(), name.end(), std::int64_t{0});
  const auto i = torch::arange(begin, begin + weight.numel()).to(torch::kDouble);
  const auto wave = torch::sin(1e-3 * i * i).reshape(weight.sizes());
  const double scale = 1.5 / std::sqrt(static_cast<double>(weight.size(-1)));
  const torch::NoGradGuard no_grad;
  weight.copy_(weight.dim() == 1 ? 1 + 0.1 * wave : scale * wave);
}

torch::Tensor tokens(std::int64_t columns, std::int64_t padded) {
  const auto i = torch::arange(kBatch * columns).reshape({kBatch, columns});
  auto result = 1 + (i * i + 3 * i + i.floor_divide(5)) % 23;
  result[-1].slice(0, columns - padded) = 0;
  return result;
}

class Parity : public testing::TestWithParam<Variant> {
 protected:
  Parity() {
    for (const safetensors::Tensor& tensor : safetensors::parse(bytes_, "parity").tensors) {
      const auto values = reinterpret_cast<const float*>(tensor.bytes.data());
      expected_[tensor.name] = torch::from_blob(const_cast<float*>(values), tensor.shape);
    }
  }

  /// The largest difference of an element is at most 1e-5 of the largest element.
  void expect_close(const std::string& name, const torch::Tensor& actual) const {
    const torch::Tensor& expected = expected_.at(name);
    ASSERT_EQ(actual.sizes(), expected.sizes()) << name;
    ASSERT_EQ(actual.dtype(), torch::kDouble) << name;
    const double largest = expected.abs().max().item<double>();
    const double difference = (actual - expected).abs().max().item<double>();
    EXPECT_LE(difference, 1e-5 * largest) << name;
    EXPECT_GT(largest, 0) << name;
  }

  std::vector<std::byte> bytes_ = read_file_bytes("tests/recipes/t5/parity.safetensors");
  std::map<std::string, torch::Tensor> expected_;
};

TEST_P(Parity, LogitsLossAndGradients) {
  const std::string variant = GetParam() == Variant::kV10 ? "v10" : "v11";
  T5 model(config_of(GetParam()));
  model->to(torch::kDouble);
  for (const auto& item : model->named_parameters()) fill_weight(item.key(), item.value());
  const auto inputs = tokens(kInputs, 4), targets = tokens(kTargets, 5);
  expect_close(variant + ".logits", model->forward(inputs, targets));
  const TargetLoss loss = model->loss(inputs, targets);
  EXPECT_EQ(loss.weight.item<float>(), static_cast<float>(kBatch * kTargets - 5));
  const auto mean = loss.sum / loss.weight;
  expect_close(variant + ".loss", mean);
  mean.backward();
  for (const auto& item : model->named_parameters()) {
    expect_close(variant + ".gradient." + item.key(), item.value().grad());
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, Parity, testing::Values(Variant::kV10, Variant::kV11),
                         [](const auto& info) {
                           return info.param == Variant::kV10 ? "ReluTied" : "GatedGeluUntied";
                         });

using ParityOfBuckets = Parity;

TEST_F(ParityOfBuckets, AreThoseOfTheReferenceAtEveryDistance) {
  const auto distance = torch::arange(-200, 201);
  const auto buckets = [&](Direction direction) {
    return position_buckets(distance, {}, direction).to(torch::kFloat);
  };
  EXPECT_TRUE(torch::equal(buckets(Direction::kBoth), expected_.at("buckets.both")));
  EXPECT_TRUE(torch::equal(buckets(Direction::kBefore), expected_.at("buckets.before")));
}

}  // namespace
}  // namespace trireme::recipes::t5
