#pragma once

#include <torch/torch.h>

#include <cstdint>

#include "recipes/bert/model.h"

namespace trireme::recipes::bert {

inline constexpr std::int64_t kVocabulary = 50;

/// A model whose runs take milliseconds.
inline BertConfig small_config(bool is_unpadded) {
  return {.vocabulary = kVocabulary,
          .positions = 16,
          .channels = 24,
          .inner = 40,
          .heads = 3,
          .blocks = 2,
          .is_unpadded = is_unpadded};
}

/// Sequences of up to `length` tokens with up to `predictions` hidden ones; at least 2 and 1.
struct RandomBatch {
  RandomBatch(std::int64_t count, std::int64_t length, std::int64_t predictions)
      : sequences{.tokens_BS = torch::randint(kVocabulary, {count, length}, torch::kInt),
                  .types_BS = torch::randint(2, {count, length}, torch::kInt),
                  .lengths_B = torch::randint(2, length + 1, {count}, torch::kInt)},
        questions{.hidden_BP = torch::randint(kVocabulary, {count, predictions}, torch::kInt),
                  .counts_B = torch::randint(1, predictions + 1, {count}, torch::kInt),
                  .is_random_B = torch::randint(2, {count}, torch::kInt)} {
    const auto places = torch::rand({count, predictions}) * sequences.lengths_B.unsqueeze(1);
    questions.positions_BP = places.floor().to(torch::kInt);
  }

  Sequences sequences;
  Questions questions;
};

}  // namespace trireme::recipes::bert
