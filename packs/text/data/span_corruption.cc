#include "packs/text/data/span_corruption.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "packs/text/data/draws.h"
#include "trireme/error.h"

namespace trireme::data {
namespace {

using text::Draws;

[[noreturn]] void refuse(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, problem);
}

/// Of more tokens the lengths would not be exact: they are computed in f64.
constexpr std::int64_t kMaxTokens = std::int64_t{1} << 52;

void check(const SpanOptions& options) {
  if (!(options.noise_density > 0 && options.noise_density < 1)) {
    refuse("the noise density must be between 0 and 1, got " +
           std::to_string(options.noise_density));
  }
  if (!(options.mean_span >= 1)) {
    refuse("spans must have at least 1 token on average, got " + std::to_string(options.mean_span));
  }
}

/// `total` as a sum of `parts` numbers of at least 1: parts - 1 of the total - 1 places between
/// units, picked by Floyd's method.
std::vector<std::int64_t> random_composition(std::int64_t total, std::int64_t parts, Draws& draws) {
  std::set<std::int64_t> places;
  for (std::int64_t last = total - parts + 1; last < total; ++last) {
    const std::int64_t place = 1 + draws.below(last);
    if (!places.insert(place).second) places.insert(last);
  }
  std::vector<std::int64_t> result;
  std::int64_t begin = 0;
  for (const std::int64_t place : places) {
    result.push_back(place - begin);
    begin = place;
  }
  result.push_back(total - begin);
  return result;
}

/// All but the last of `tokens`, which must be the end token.
std::span<const Token> without_end(std::span<const Token> tokens, const SpecialTokens& special) {
  if (tokens.empty() || tokens.back() != special.end) {
    refuse("inputs and targets end with token " + std::to_string(special.end) +
           (tokens.empty() ? ", got none" : ", got " + std::to_string(tokens.back())));
  }
  return tokens.first(tokens.size() - 1);
}

}  // namespace

SpanLengths span_lengths(std::int64_t tokens, const SpanOptions& options) {
  check(options);
  if (tokens < 2 || tokens > kMaxTokens) {
    refuse("spans are hidden in 2 to 2^52 tokens, got " + std::to_string(tokens));
  }
  const auto rounded = [](double number) {
    return static_cast<std::int64_t>(std::nearbyint(number));
  };
  SpanLengths lengths{.tokens = tokens};
  lengths.noise_tokens = std::clamp<std::int64_t>(
      rounded(static_cast<double>(tokens) * options.noise_density), 1, tokens - 1);
  const std::int64_t kept = tokens - lengths.noise_tokens;
  lengths.spans = std::clamp<std::int64_t>(
      rounded(static_cast<double>(lengths.noise_tokens) / options.mean_span), 1,
      std::min(lengths.noise_tokens, kept));
  lengths.inputs = kept + lengths.spans + 1;
  lengths.targets = lengths.noise_tokens + lengths.spans + 1;
  return lengths;
}

SpanLengths longest_span_lengths(std::int64_t inputs, const SpanOptions& options) {
  const SpanLengths shortest = span_lengths(2, options);
  if (shortest.inputs > inputs) {
    refuse("inputs of " + std::to_string(inputs) + " tokens hold no text; at least " +
           std::to_string(shortest.inputs) + " do");
  }
  // Another token of text makes inputs as long or one longer.
  std::int64_t fits = 2, exceeds = kMaxTokens + 1;
  while (exceeds - fits > 1) {
    const std::int64_t middle = fits + (exceeds - fits) / 2;
    (span_lengths(middle, options).inputs <= inputs ? fits : exceeds) = middle;
  }
  return span_lengths(fits, options);
}

std::optional<Token> sentinel_index(Token token, const SpecialTokens& special) {
  if (token > special.first_sentinel || token <= special.first_sentinel - special.num_sentinels) {
    return std::nullopt;
  }
  return special.first_sentinel - token;
}

CorruptedText corrupt_spans(std::span<const Token> tokens, const SpecialTokens& special,
                            const SpanOptions& options, std::uint64_t stream) {
  const SpanLengths lengths = span_lengths(static_cast<std::int64_t>(tokens.size()), options);
  if (lengths.spans > special.num_sentinels) {
    refuse(std::to_string(tokens.size()) + " tokens have " + std::to_string(lengths.spans) +
           " hidden spans, and there are only " + std::to_string(special.num_sentinels) +
           " sentinels");
  }
  Draws draws(stream);
  const auto hidden = random_composition(lengths.noise_tokens, lengths.spans, draws);
  const auto kept = random_composition(lengths.tokens - lengths.noise_tokens, lengths.spans, draws);
  CorruptedText text;
  auto at = tokens.begin();
  for (std::size_t span = 0; span < hidden.size(); ++span) {
    const Token sentinel = special.first_sentinel - static_cast<Token>(span);
    text.inputs.insert(text.inputs.end(), at, at + kept[span]);
    at += kept[span];
    text.inputs.push_back(sentinel);
    text.targets.push_back(sentinel);
    text.targets.insert(text.targets.end(), at, at + hidden[span]);
    at += hidden[span];
  }
  text.inputs.push_back(special.end);
  text.targets.push_back(special.end);
  return text;
}

std::map<Token, std::vector<Token>> hidden_spans(std::span<const Token> targets,
                                                 const SpecialTokens& special) {
  if (!targets.empty() && targets.back() == special.end) targets = without_end(targets, special);
  std::map<Token, std::vector<Token>> spans;
  std::vector<Token>* current = nullptr;
  for (const Token token : targets) {
    if (const auto index = sentinel_index(token, special)) {
      current = &(spans[*index] = {});
    } else if (current != nullptr) {
      current->push_back(token);
    }
  }
  return spans;
}

std::vector<Token> restore_spans(const CorruptedText& text, const SpecialTokens& special) {
  const auto targets = without_end(text.targets, special);
  std::vector<Token> tokens;
  auto hidden = targets.begin();
  for (const Token token : without_end(text.inputs, special)) {
    if (!sentinel_index(token, special)) {
      tokens.push_back(token);
      continue;
    }
    if (hidden == targets.end() || *hidden != token) {
      refuse("the targets do not say what sentinel " + std::to_string(token) + " hides");
    }
    for (++hidden; hidden != targets.end() && !sentinel_index(*hidden, special); ++hidden) {
      tokens.push_back(*hidden);
    }
  }
  if (hidden != targets.end()) refuse("the targets say more than the inputs hide");
  return tokens;
}

}  // namespace trireme::data
