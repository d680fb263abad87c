#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "packs/text/data/span_corruption.h"
#include "recipes/t5/model.h"

namespace trireme::recipes::t5 {

/// What a completion may hold, and where it ends.
struct CompletionLimits {
  data::Token end = 1;
  std::int64_t vocabulary = std::numeric_limits<std::int64_t>::max();  ///< Tokens are below it.
  std::int64_t max_tokens = 128;
};

/// The targets that the model finds most likely, token by token, given the ones before (greedy).
///
/// inputs_BS   tokens, i32 or i64.
/// limits      the tokenizer's vocabulary: the model's may be padded beyond it.
/// Returns     per row the tokens before the first end token, at most `max_tokens`; kPad is never
///             one. Targets whose spans hide the end of a document hold an end token there, which
///             looks as the last one does: such a row ends early.
/// Runs the model in evaluation mode and leaves its mode as it was.
/// Cost        one run of the encoder; of the decoder as many as the longest row has tokens, over
///             all tokens so far.
std::vector<std::vector<data::Token>> complete(T5 model, const torch::Tensor& inputs_BS,
                                               const CompletionLimits& limits);

}  // namespace trireme::recipes::t5
