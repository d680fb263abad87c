#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "packs/text/data/draws.h"
#include "packs/text/data/tokenizer.h"

namespace trireme::text {

/// How tokens are hidden from a masked language model.
struct MaskingOptions {
  double probability = 0.15;          ///< Part of the positions that are predicted.
  std::int64_t max_predictions = 20;  ///< Of a sample.
  double mask_probability = 0.8;      ///< Of these positions are masked ..
  double random_probability = 0.1;    ///< .. get a random token; the others keep theirs.
  Token mask = 103;                   ///< The token that hides.
  Token vocabulary = 30522;           ///< Random tokens are below.
};

struct MaskedText {
  std::vector<Token> tokens;            ///< As the model sees them.
  std::vector<std::int32_t> positions;  ///< That it predicts, ascending.
  std::vector<Token> hidden;            ///< What was there.
  bool operator==(const MaskedText&) const = default;
};

/// Hides `probability` of the tokens, rounded, at least one and at most `max_predictions`, where
/// there are so many candidates. A pure function of arguments and draws.
///
/// candidates   positions that may be predicted, ascending.
MaskedText mask_tokens(std::vector<Token> tokens, std::vector<std::int32_t> candidates,
                       const MaskingOptions& options, Draws& draws);

/// kInvalidArgument, naming the option, where one is out of range.
void check(const MaskingOptions& options);

}  // namespace trireme::text
