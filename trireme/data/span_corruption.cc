#include "trireme/data/span_corruption.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "trireme/base/error.h"
#include "trireme/base/random.h"

namespace trireme::data {
namespace {

[[noreturn]] void refuse(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, problem);
}

void check(const SpanOptions& options) {
  if (!(options.noise_density > 0 && options.noise_density < 1)) {
    refuse("the noise density must be between 0 and 1, got " +
           std::to_string(options.noise_density));
  }
  if (!(options.mean_span >= 1)) {
    refuse("spans must have at least 1 token on average, got " + std::to_string(options.mean_span));
  }
}

/// Draws of one stream.
class Draws {
 public:
  explicit Draws(std::uint64_t stream) : stream_(stream) {}

  /// Below `count`; each as likely, to 1 in 2^32 of it.
  std::int64_t below(std::int64_t count) {
    const std::uint64_t draw = stream_seed(stream_, {next_++});
    return static_cast<std::int64_t>(
        static_cast<unsigned __int128>(draw) * static_cast<unsigned __int128>(count) >> 64);
  }

 private:
  std::uint64_t stream_;
  std::uint64_t next_ = 0;
};

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

bool is_sentinel(Token token, const SpecialTokens& special) {
  return token <= special.first_sentinel && token > special.first_sentinel - special.num_sentinels;
}

}  // namespace

SpanLengths span_lengths(std::int64_t tokens, const SpanOptions& options) {
  check(options);
  if (tokens < 2) {
    refuse("spans are hidden in at least 2 tokens, got " + std::to_string(tokens));
  }
  const auto rounded = [](double number) {
    return static_cast<std::int64_t>(std::llround(number));
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
  SpanLengths best = span_lengths(2, options);
  if (best.inputs > inputs) {
    refuse("inputs of " + std::to_string(inputs) + " tokens hold no text; at least " +
           std::to_string(best.inputs) + " do");
  }
  for (SpanLengths next = best; next.inputs <= inputs;
       next = span_lengths(next.tokens + 1, options)) {
    best = next;
  }
  return best;
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

std::vector<Token> restore_spans(const CorruptedText& text, const SpecialTokens& special) {
  const std::vector<Token>& targets = text.targets;
  std::vector<Token> tokens;
  auto hidden = targets.begin();
  const auto is_over = [&] { return hidden == targets.end() || *hidden == special.end; };
  for (const Token token : text.inputs) {
    if (token == special.end) break;
    if (!is_sentinel(token, special)) {
      tokens.push_back(token);
      continue;
    }
    if (is_over() || *hidden != token) {
      refuse("the targets do not say what sentinel " + std::to_string(token) + " hides");
    }
    for (++hidden; !is_over() && !is_sentinel(*hidden, special); ++hidden) {
      tokens.push_back(*hidden);
    }
  }
  if (!is_over()) refuse("the targets say more than the inputs hide");
  return tokens;
}

}  // namespace trireme::data
