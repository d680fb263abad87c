#include "recipes/t5/complete.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace trireme::recipes::t5 {
namespace {

using Tokens = std::vector<data::Token>;

constexpr data::Token kEnd = 1;
constexpr data::Token kVocabulary = 12;

/// Trained until it gives rows of inputs back, in reverse.
class Complete : public testing::Test {
 protected:
  Complete() {
    torch::manual_seed(1);
    Config config = make_config("tiny", Variant::kV10);
    config.vocabulary = 16;  // padded
    config.dropout = 0.05;   // so that training and evaluation mode differ
    model_ = T5(config);
    torch::optim::Adam adam(model_->parameters(), torch::optim::AdamOptions(3e-3));
    for (int i = 0; i < 200; ++i) {
      const TargetLoss loss = model_->loss(inputs_, targets_);
      model_->zero_grad();
      (loss.sum / loss.weight).backward();
      adam.step();
    }
  }

  torch::Tensor inputs_ = torch::tensor({{2, 3, 4}, {5, 6, 7}, {8, 9, 10}}, torch::kInt);
  torch::Tensor targets_ = torch::tensor({{4, 3, 2, 1}, {7, 1, 0, 0}, {10, 9, 1, 0}}, torch::kInt);
  T5 model_{nullptr};
};

TEST_F(Complete, RowsEndAtTheEndTokenEachAtItsPlace) {
  const auto rows = complete(model_, inputs_, {.end = kEnd, .max_tokens = 10});
  EXPECT_EQ(rows, (std::vector<Tokens>{{4, 3, 2}, {7}, {10, 9}}));
}

TEST_F(Complete, NoRowIsLongerThanTheLimit) {
  EXPECT_EQ(complete(model_, inputs_, {.end = kEnd, .max_tokens = 1}),
            (std::vector<Tokens>{{4}, {7}, {10}}));
  EXPECT_EQ(complete(model_, inputs_, {.end = kEnd, .max_tokens = 0}),
            (std::vector<Tokens>{{}, {}, {}}));
}

/// Rows of the matrix beyond the tokenizer's tokens are never targets, so they may win.
TEST_F(Complete, TokensAreOfTheVocabulary) {
  {
    const torch::NoGradGuard no_grad;
    auto rows = model_->named_parameters()["embedding.weight"];
    rows[kVocabulary].fill_(100);  // one of them is the largest whatever the channels add up to
    rows[kVocabulary + 1].fill_(-100);
  }
  for (const Tokens& row : complete(model_, inputs_, {.end = kEnd, .max_tokens = 1})) {
    EXPECT_GE(row.at(0), kVocabulary);
  }
  EXPECT_EQ(complete(model_, inputs_, {.end = kEnd, .vocabulary = kVocabulary, .max_tokens = 10}),
            (std::vector<Tokens>{{4, 3, 2}, {7}, {10, 9}}));
}

TEST_F(Complete, TheModeIsLeftAsItWas) {
  for (const bool training : {true, false}) {
    model_->train(training);
    complete(model_, inputs_, {.end = kEnd, .max_tokens = 2});
    EXPECT_EQ(model_->is_training(), training);
  }
}

}  // namespace
}  // namespace trireme::recipes::t5
