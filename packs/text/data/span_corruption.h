#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace trireme::data {

using Token = std::int32_t;

/// How much of a text is hidden, in which pieces.
struct SpanOptions {
  double noise_density = 0.15;  ///< Part of the tokens that is hidden; in (0, 1).
  double mean_span = 3;         ///< Tokens of a hidden span on average; at least 1.
};

/// What corrupting a run of tokens gives, in numbers: these do not depend on chance.
struct SpanLengths {
  std::int64_t tokens = 0;
  std::int64_t noise_tokens = 0;
  std::int64_t spans = 0;    ///< As many sentinels.
  std::int64_t inputs = 0;   ///< Tokens that stay, sentinels, end.
  std::int64_t targets = 0;  ///< Sentinels, hidden tokens, end.
  bool operator==(const SpanLengths&) const = default;
};

/// Of `tokens` tokens; halves are rounded to even numbers, as T5's code does. kInvalidArgument for
/// fewer than 2 tokens, more than 2^52 or options out of range.
SpanLengths span_lengths(std::int64_t tokens, const SpanOptions& options = {});

/// Of the most tokens, up to 2^52, whose inputs are at most `inputs` long: 568 tokens for 512,
/// targets 114.
/// kInvalidArgument where not even 2 tokens fit.
SpanLengths longest_span_lengths(std::int64_t inputs, const SpanOptions& options = {});

/// The tokens that stand for no text. Only the end token may be within a text: behind a document.
struct SpecialTokens {
  Token end = 1;
  Token first_sentinel = 0;  ///< The sentinel of span k is `first_sentinel - k`: they descend.
  Token num_sentinels = 100;
};

/// k where `token` is the sentinel of span k.
std::optional<Token> sentinel_index(Token token, const SpecialTokens& special);

struct CorruptedText {
  std::vector<Token> inputs;
  std::vector<Token> targets;
  bool operator==(const CorruptedText&) const = default;
};

/// Replaces random spans by sentinels; the targets say what they hid:
///
///     tokens    the cat sat on the mat
///     inputs    the <0> on the <1> end
///     targets   <0> cat sat <1> mat end
///
/// Spans and the runs between them are random compositions of their totals, each equally likely;
/// a run comes first. A pure function of its arguments.
///
/// tokens   without sentinels; end tokens are hidden and kept as others are.
/// stream   decides the spans: stream_seed of (seed, sample, visit).
/// Errors   those of span_lengths; kInvalidArgument where there are more spans than sentinels.
/// Source   Raffel et al., "Exploring the limits of transfer learning with a unified text-to-text
///          transformer", JMLR 21 (2020), section 3.1.4.
CorruptedText corrupt_spans(std::span<const Token> tokens, const SpecialTokens& special,
                            const SpanOptions& options, std::uint64_t stream);

/// What the targets say that the spans hid, by the k of their sentinels. An end token that comes
/// last belongs to no span; earlier ones are text.
///
/// targets   also those of a model: what comes before the first sentinel is lost, and of a repeated
///           one all but the last.
std::map<Token, std::vector<Token>> hidden_spans(std::span<const Token> targets,
                                                 const SpecialTokens& special);

/// The tokens that `text` was made of: the inverse of corrupt_spans.
///
/// Errors   kInvalidArgument where inputs and targets do not fit each other or do not end with the
///          end token.
std::vector<Token> restore_spans(const CorruptedText& text, const SpecialTokens& special);

}  // namespace trireme::data
