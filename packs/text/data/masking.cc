#include "packs/text/data/masking.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "trireme/error.h"

namespace trireme::text {
namespace {

void require(bool is_right, const std::string& expected, double actual) {
  if (is_right) return;
  throw Error(ErrorKind::kInvalidArgument,
              "masking: " + expected + ", got " + std::to_string(actual));
}

}  // namespace

void check(const MaskingOptions& options) {
  require(options.probability > 0 && options.probability < 1,
          "the part of the positions that is predicted is between 0 and 1", options.probability);
  require(options.max_predictions >= 1, "a sample has at least one prediction",
          static_cast<double>(options.max_predictions));
  require(options.mask_probability >= 0 && options.random_probability >= 0 &&
              options.mask_probability + options.random_probability <= 1,
          "the parts that are masked and replaced are at least 0 and together at most 1",
          options.mask_probability + options.random_probability);
  require(options.mask >= 0 && options.mask < options.vocabulary,
          "the mask is a token of the vocabulary of " + std::to_string(options.vocabulary),
          options.mask);
}

MaskedText mask_tokens(std::vector<Token> tokens, std::vector<std::int32_t> candidates,
                       const MaskingOptions& options, Draws& draws) {
  const auto wanted = static_cast<std::int64_t>(
      std::nearbyint(static_cast<double>(tokens.size()) * options.probability));
  const std::int64_t most = std::min(options.max_predictions, std::ssize(candidates));
  const std::int64_t count = std::min(std::max<std::int64_t>(wanted, 1), most);
  for (std::int64_t i = 0; i < count; ++i) {
    std::swap(candidates[i], candidates[i + draws.below(std::ssize(candidates) - i)]);
  }
  candidates.resize(static_cast<std::size_t>(count));
  std::ranges::sort(candidates);
  MaskedText text{.tokens = std::move(tokens), .positions = std::move(candidates), .hidden = {}};
  for (const std::int32_t position : text.positions) {
    Token& token = text.tokens[static_cast<std::size_t>(position)];
    text.hidden.push_back(token);
    if (draws.happens(options.mask_probability)) {
      token = options.mask;
    } else if (draws.happens(options.random_probability / (1 - options.mask_probability))) {
      token = static_cast<Token>(draws.below(options.vocabulary));
    }
  }
  return text;
}

}  // namespace trireme::text
