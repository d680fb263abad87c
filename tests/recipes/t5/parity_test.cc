// Against the T5 of Hugging Face transformers: make_parity.py wrote its numbers. The same formulas
// stand there for weights and tokens. Both compute in f64, but for the reference's norms in f32:
// gradients differ by up to 2.3e-6.

#include "tests/recipes/parity.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <string>

#include "recipes/t5/model.h"

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

torch::Tensor tokens(std::int64_t columns, std::int64_t padded) {
  const auto i = torch::arange(kBatch * columns).reshape({kBatch, columns});
  auto result = 1 + (i * i + 3 * i + i.floor_divide(5)) % 23;
  result[-1].slice(0, columns - padded) = 0;
  return result;
}

class Parity : public testing::TestWithParam<Variant> {
 protected:
  const ExpectedNumbers expected_{"tests/recipes/t5/parity.safetensors", 1e-5};
};

TEST_P(Parity, LogitsLossAndGradients) {
  const std::string variant = GetParam() == Variant::kV10 ? "v10" : "v11";
  T5 model(config_of(GetParam()));
  model->to(torch::kDouble);
  fill_weights(*model);
  const auto inputs = tokens(kInputs, 4), targets = tokens(kTargets, 5);
  expected_.expect_close(variant + ".logits", model->forward(inputs, targets));
  const TargetLoss loss = model->loss(inputs, targets);
  EXPECT_EQ(loss.weight.item<float>(), static_cast<float>(kBatch * kTargets - 5));
  const auto mean = loss.sum / loss.weight;
  expected_.expect_close(variant + ".loss", mean);
  mean.backward();
  for (const auto& item : model->named_parameters()) {
    expected_.expect_close(variant + ".gradient." + item.key(), item.value().grad());
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
