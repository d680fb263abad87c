#pragma once

#include <vector>

#include "recipes/t5/model.h"
#include "trireme/data/span_corruption.h"

namespace trireme::recipes::t5 {

/// Where a completion ends.
struct CompletionLimits {
  data::Token end = 1;
  std::int64_t max_tokens = 128;
};

/// The targets that the model finds most likely, token by token, given the ones before (greedy).
///
/// inputs_BS   tokens, i32 or i64.
/// Returns     per row the tokens before the end token, at most `max_tokens`; kPad is never one.
/// Runs the model in evaluation mode and leaves its mode as it was.
/// Cost        one run of the encoder; of the decoder as many as the longest row has tokens, over
///             all tokens so far.
std::vector<std::vector<data::Token>> complete(T5 model, const torch::Tensor& inputs_BS,
                                               const CompletionLimits& limits);

}  // namespace trireme::recipes::t5
