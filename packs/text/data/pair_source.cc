#include "packs/text/data/pair_source.h"

#include <algorithm>
#include <utility>

#include "packs/text/data/copy_fields.h"
#include "trireme/base/json.h"
#include "trireme/base/random.h"
#include "trireme/base/sha256.h"
#include "trireme/error.h"

namespace trireme::text {
namespace {

constexpr std::int64_t kSpecialTokens = 3;  // of a sample
constexpr std::int64_t kReadTokens = 1 << 20;

constexpr const char* kPairs = "pairs of sentences";

[[noreturn]] void refuse_pairs(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, std::string(kPairs) + ": " + problem);
}

void check_pairs(const PairOptions& options) {
  if (options.length < kSpecialTokens + 2 || options.length > 1 << 20) {
    refuse_pairs("a sample takes 5 to 2^20 tokens, got " + std::to_string(options.length));
  }
  for (const double probability : {options.short_probability, options.random_probability}) {
    if (probability >= 0 && probability <= 1) continue;
    refuse_pairs("probabilities are from 0 to 1, got " + std::to_string(probability));
  }
  check(options.masking);
}

/// Takes tokens from the longer segment, at an end that chance picks, until both fit.
void truncate(std::vector<Token>& first, std::vector<Token>& second, std::int64_t most,
              Draws& draws) {
  std::size_t begins[2] = {0, 0}, ends[2] = {first.size(), second.size()};
  const auto length = [&](int i) { return ends[i] - begins[i]; };
  while (length(0) + length(1) > static_cast<std::size_t>(most)) {
    const int longer = length(0) > length(1) ? 0 : 1;
    draws.happens(0.5) ? ++begins[longer] : --ends[longer];
  }
  const auto cut = [&](std::vector<Token>& tokens, int i) {
    tokens.resize(ends[i]);
    tokens.erase(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(begins[i]));
  };
  cut(first, 0);
  cut(second, 1);
}

/// Splits `tokens`: what is from `at` on is returned.
std::vector<Token> split_off(std::vector<Token>& tokens, std::int64_t at) {
  const std::vector<Token> rest(tokens.begin() + at, tokens.end());
  tokens.resize(static_cast<std::size_t>(at));
  return rest;
}

std::int32_t count_of(const std::vector<std::int32_t>& numbers) {
  return static_cast<std::int32_t>(numbers.size());
}

}  // namespace

PairSource::PairSource(TokenShards shards, const PairOptions& options)
    : shards_(std::move(shards)), options_(options) {
  check_pairs(options);
  find_sentences();
  find_groups();
  if (sentences_.empty() || sentences_.front().passage == sentences_.back().passage) {
    refuse_pairs("expected sentences of at least two passages, got " +
                 std::to_string(sentences_.size()) + " of " +
                 std::to_string(sentences_.empty() ? 0 : 1) + "; give more text");
  }
  const std::int64_t most = options.masking.max_predictions;
  fields_ = {{"tokens", Dtype::kI32, {options.length}},
             {"types", Dtype::kI32, {options.length}},
             {"length", Dtype::kI32, {}},
             {"positions", Dtype::kI32, {most}},
             {"hidden", Dtype::kI32, {most}},
             {"predictions", Dtype::kI32, {}},
             {"is_random", Dtype::kI32, {}}};
}

/// A sentence that alone is longer than a sample becomes several.
void PairSource::find_sentences() {
  const std::int64_t longest = options_.length - kSpecialTokens;
  std::int64_t begin = 0;
  std::int32_t passage = 0;
  bool is_within = false;  // a sentence, of which a run was taken
  std::vector<Token> block;
  for (std::int64_t at = 0; at < shards_.num_tokens(); at += std::ssize(block)) {
    block.resize(static_cast<std::size_t>(std::min(kReadTokens, shards_.num_tokens() - at)));
    shards_.read(at, block);
    for (std::int64_t i = 0; i < std::ssize(block); ++i) {
      const std::int64_t length = at + i - begin;
      const bool is_end = block[static_cast<std::size_t>(i)] == options_.special.separator;
      if (!is_end && length + 1 < longest) continue;
      const std::int64_t own = is_end ? length : length + 1;
      if (own > 0) sentences_.push_back({begin, static_cast<std::int32_t>(own), passage});
      begin = at + i + 1;
      if (is_end && own == 0 && !is_within) ++passage;
      is_within = !is_end;
    }
  }
}

void PairSource::find_groups() {
  const std::int64_t enough = options_.length - kSpecialTokens;
  const std::int64_t count = std::ssize(sentences_);
  for (std::int64_t begin = 0; begin < count;) {
    std::int64_t end = begin, tokens = 0;
    while (end < count && sentence(end).passage == sentence(begin).passage && tokens < enough) {
      tokens += sentence(end++).length;
    }
    if (tokens > 1) groups_.push_back({begin, end});
    begin = end;
  }
}

/// The tokens of the first sentences of a group, until there are enough. `end` is set to the sentence
/// behind them.
std::vector<Token> PairSource::read_sentences(Group group, std::int64_t enough,
                                              std::int64_t& end) const {
  std::vector<Token> tokens;
  for (end = group.begin; end < group.end && std::ssize(tokens) < enough; ++end) {
    const std::size_t before = tokens.size();
    tokens.resize(before + static_cast<std::size_t>(sentence(end).length));
    shards_.read(sentence(end).begin, std::span(tokens).subspan(before));
  }
  return tokens;
}

/// Sentences of another passage than `passage`, from one on that is as likely as any other.
std::vector<Token> PairSource::elsewhere(std::int32_t passage, std::int64_t enough,
                                         Draws& draws) const {
  const auto own = std::ranges::equal_range(sentences_, passage, {}, &Sentence::passage);
  const std::int64_t first = own.begin() - sentences_.begin(), count = std::ssize(own);
  std::int64_t begin = draws.below(std::ssize(sentences_) - count);
  if (begin >= first) begin += count;
  std::int64_t end = begin;
  while (end < std::ssize(sentences_) && sentence(end).passage == sentence(begin).passage) ++end;
  return read_sentences({begin, end}, std::max<std::int64_t>(enough, 1), end);
}

/// Both segments of at most `most` tokens together. The first is the group's beginning; of a group of
/// one sentence, that sentence's.
PairSource::Segments PairSource::segments_of(Group group, std::int64_t most, Draws& draws) const {
  Segments segments{.first = read_sentences(group, most, group.end)};
  const std::int64_t count = group.end - group.begin, available = std::ssize(segments.first);
  std::int64_t cut = 0;
  if (count == 1) {
    cut = 1 + draws.below(std::max<std::int64_t>(available - 1, 1));
  } else {
    const std::int64_t last = group.begin + draws.below(count - 1);
    for (std::int64_t i = group.begin; i <= last; ++i) cut += sentence(i).length;
  }
  segments.is_random = draws.happens(options_.random_probability) || cut == available;
  segments.second = split_off(segments.first, cut);
  if (segments.is_random) {
    segments.second = elsewhere(sentence(group.begin).passage, most - cut, draws);
  }
  truncate(segments.first, segments.second, most, draws);
  return segments;
}

SegmentPair PairSource::pair_of(data::Sample sample) const {
  if (sample.index < 0 || sample.index >= num_samples()) {
    refuse_pairs("there is no sample " + std::to_string(sample.index) + " among " +
                 std::to_string(num_samples()));
  }
  Draws draws(stream_seed(options_.seed, {static_cast<std::uint64_t>(sample.index),
                                          static_cast<std::uint64_t>(sample.visit)}));
  const std::int64_t longest = options_.length - kSpecialTokens;
  const bool is_short = draws.happens(options_.short_probability);
  const std::int64_t most = is_short ? 2 + draws.below(longest - 1) : longest;
  const Segments segments =
      segments_of(groups_[static_cast<std::size_t>(sample.index)], most, draws);
  std::vector<Token> tokens = {options_.special.first};
  std::vector<std::int32_t> candidates;
  const auto add = [&](const std::vector<Token>& segment) {
    for (const Token token : segment) {
      candidates.push_back(count_of(tokens));
      tokens.push_back(token);
    }
    tokens.push_back(options_.special.separator);
  };
  add(segments.first);
  SegmentPair pair{.second = tokens.size(), .is_random = segments.is_random};
  add(segments.second);
  pair.text = mask_tokens(std::move(tokens), std::move(candidates), options_.masking, draws);
  return pair;
}

void PairSource::read(data::Sample sample,
                      std::span<const std::span<std::byte>> destinations) const {
  const SegmentPair pair = pair_of(sample);
  std::vector<std::int32_t> types(pair.text.tokens.size(), 0);
  std::fill(types.begin() + static_cast<std::ptrdiff_t>(pair.second), types.end(), 1);
  copy_fields(fields_,
              {{pair.text.tokens, options_.special.padding},
               {types},
               {{count_of(pair.text.tokens)}},
               {pair.text.positions},
               {pair.text.hidden},
               {{count_of(pair.text.positions)}},
               {{pair.is_random ? 1 : 0}}},
              destinations, kPairs);
}

std::string PairSource::identity() const {
  const PairTokens& special = options_.special;
  const MaskingOptions& masking = options_.masking;
  return sha256(
      compact_text({{"kind", "pairs"},
                    {"tokens", shards_.sha256()},
                    {"length", options_.length},
                    {"short_probability", options_.short_probability},
                    {"random_probability", options_.random_probability},
                    {"special", {special.padding, special.first, special.separator}},
                    {"masking",
                     {masking.probability, masking.max_predictions, masking.mask_probability,
                      masking.random_probability, masking.mask, masking.vocabulary}},
                    {"seed", options_.seed}}));
}

}  // namespace trireme::text
