// Against the BERT of Hugging Face transformers: make_parity.py wrote its numbers, in f64. The same
// formulas stand there for weights and tokens.

#include "tests/recipes/parity.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <string>

#include "recipes/bert/model.h"

namespace trireme::recipes::bert {
namespace {

constexpr std::int64_t kBatch = 3;
constexpr std::int64_t kLength = 11;

BertConfig parity_config(bool is_unpadded) {
  return {.vocabulary = 24,
          .positions = 13,
          .channels = 8,
          .inner = 12,
          .heads = 2,
          .blocks = 2,
          .is_unpadded = is_unpadded};
}

Sequences parity_sequences() {
  const auto i = torch::arange(kBatch * kLength).reshape({kBatch, kLength});
  const auto tokens = 1 + (i * i + 3 * i + i.floor_divide(5)) % 23;
  const auto lengths = torch::tensor({11, 7, 9});
  const auto places = torch::arange(kLength).unsqueeze(0);
  const auto is_token = places < lengths.unsqueeze(1);
  return {.tokens_BS = tokens * is_token,
          .types_BS = (places >= 4).logical_and(is_token).to(torch::kInt),
          .lengths_B = lengths};
}

/// With a third prediction that does not count.
Questions parity_questions() {
  return {.positions_BP = torch::tensor({{1, 4, 0}, {2, 5, 3}, {3, 6, 0}}, torch::kInt),
          .hidden_BP = torch::tensor({{2, 7, 0}, {3, 8, 9}, {4, 9, 0}}, torch::kInt),
          .counts_B = torch::tensor({2, 2, 2}, torch::kInt),
          .is_random_B = torch::tensor({0, 1, 1}, torch::kInt)};
}

class Parity : public testing::TestWithParam<bool> {
 protected:
  const ExpectedNumbers expected_{"tests/recipes/bert/parity.safetensors", 2e-5};
};

TEST_P(Parity, LogitsLossAndGradients) {
  Bert model(parity_config(GetParam()));
  fill_weights(*model);
  const Sequences sequences = parity_sequences();
  const Questions questions = parity_questions();
  const auto x_BSC = model->encode(sequences);
  expected_.expect_close("next_logits", model->next_logits(x_BSC));
  auto logits = model->masked_logits(x_BSC, questions);
  if (!GetParam()) logits = logits.unflatten(0, {kBatch, 3}).slice(1, 0, 2).flatten(0, 1);
  expected_.expect_close("masked_logits", logits);
  const PretrainingLosses losses = model->losses(sequences, questions);
  EXPECT_EQ(losses.num_masked.item<float>(), 6);
  const auto loss = losses.masked_sum / losses.num_masked + losses.next_mean;
  expected_.expect_close("loss", loss);
  loss.backward();
  for (const auto& item : model->named_parameters()) {
    expected_.expect_close("gradient." + item.key(), item.value().grad());
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, Parity, testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "TokensAlone" : "Padded");
});

}  // namespace
}  // namespace trireme::recipes::bert
