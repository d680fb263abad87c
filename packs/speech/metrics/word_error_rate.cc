#include "packs/speech/metrics/word_error_rate.h"

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "trireme/error.h"

namespace trireme::speech {
namespace {

/// As isspace of the C locale.
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

std::string to_lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> words;
  words.reserve(text.size() / 4);
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    for (; begin < text.size() && is_space(text[begin]);) ++begin;
    for (end = begin; end < text.size() && !is_space(text[end]);) ++end;
    if (end > begin) words.push_back(text.substr(begin, end - begin));
  }
  return words;
}

/// Words as numbers, equal where the words are.
class Numbers {
 public:
  explicit Numbers(std::size_t most_words) { numbers_.reserve(most_words); }

  std::vector<std::int32_t> of(const std::vector<std::string_view>& words) {
    std::vector<std::int32_t> result;
    result.reserve(words.size());
    for (const std::string_view word : words) {
      const auto next = static_cast<std::int32_t>(numbers_.size());
      result.push_back(numbers_.try_emplace(word, next).first->second);
    }
    return result;
  }

 private:
  std::unordered_map<std::string_view, std::int32_t> numbers_;
};

/// The cheapest alignment of the beginnings of both texts: its cost, which of the three steps ended
/// it, and its number of deletions, in one number, so that the smallest is the one that counts.
using Cell = std::uint64_t;

constexpr int kStepBit = 24;
constexpr int kCostBit = 26;
constexpr Cell kInserted = Cell{1} << kStepBit;
constexpr Cell kDeleted = Cell{2} << kStepBit;
constexpr Cell kStep = Cell{3} << kStepBit;
constexpr Cell kDeletions = kInserted - 1;

void check(const AlignmentCosts& costs, std::int64_t num_expected, std::int64_t num_recognised) {
  const auto [least, most] = std::minmax({costs.substitution, costs.deletion, costs.insertion});
  if (least < 1) {
    throw Error(ErrorKind::kInvalidArgument,
                "word errors: expected costs of 1 or more, got " + std::to_string(least));
  }
  const std::int64_t num_words = num_expected + num_recognised;
  if (num_words > std::int64_t{kDeletions} || num_words > (std::int64_t{1} << 38) / most - 1) {
    throw Error(ErrorKind::kInvalidArgument, "word errors: an alignment of " +
                                                 std::to_string(num_words) +
                                                 " words does not fit; cut them into utterances");
  }
}

/// The words of both texts, equal numbers where they are equal.
struct Texts {
  std::vector<std::int32_t> reference, hypothesis;

  /// Words at the end that are equal: the alignment that counts pairs them, and they cost nothing.
  std::size_t num_equal = 0;

  std::span<const std::int32_t> unequal_reference() const {
    return std::span(reference).first(reference.size() - num_equal);
  }
  std::span<const std::int32_t> unequal_hypothesis() const {
    return std::span(hypothesis).first(hypothesis.size() - num_equal);
  }
};

Texts read(std::string_view reference, std::string_view hypothesis,
           const WordErrorOptions& options) {
  std::string lower_reference, lower_hypothesis;
  if (options.ignores_case) {
    reference = lower_reference = to_lower(reference);
    hypothesis = lower_hypothesis = to_lower(hypothesis);
  }
  const std::vector<std::string_view> expected = split(reference), recognised = split(hypothesis);
  check(options.costs, std::ssize(expected), std::ssize(recognised));
  Numbers numbers(expected.size() + recognised.size());
  Texts texts{numbers.of(expected), numbers.of(recognised)};
  const auto first_unequal = std::mismatch(texts.reference.rbegin(), texts.reference.rend(),
                                           texts.hypothesis.rbegin(), texts.hypothesis.rend());
  texts.num_equal = first_unequal.first - texts.reference.rbegin();
  return texts;
}

/// keep   is told each cell with its step, row by row, one for each word of the reference.
template <typename Keep>
Cell align(const Texts& texts, const AlignmentCosts& costs, const Keep& keep) {
  const auto hypothesis = texts.unequal_hypothesis();
  const auto cost = [](std::int32_t units) { return static_cast<Cell>(units) << kCostBit; };
  const Cell substitution = cost(costs.substitution);
  const Cell insertion = cost(costs.insertion) | kInserted;
  const Cell deletion = (cost(costs.deletion) | kDeleted) + 1;
  std::vector<Cell> row(hypothesis.size() + 1);  // of the reference's words so far
  for (std::size_t j = 0; j < hypothesis.size(); ++j) row[j + 1] = row[j] + cost(costs.insertion);
  for (const std::int32_t word : texts.unequal_reference()) {
    Cell diagonal = row[0];
    Cell left = row[0] = (row[0] + deletion) & ~kStep;
    for (std::size_t j = 0; j < hypothesis.size(); ++j) {
      const Cell paired = diagonal + (word == hypothesis[j] ? 0 : substitution);
      diagonal = row[j + 1];
      const Cell best = std::min(std::min(paired, diagonal + deletion), left + insertion);
      keep(best);
      left = row[j + 1] = best & ~kStep;
    }
  }
  return row.back();
}

/// What ended the alignment of each pair of beginnings that are not empty: steps of cells.
class Steps {
 public:
  Steps(const Texts& texts, const AlignmentCosts& costs)
      : num_rows_(texts.unequal_reference().size()),
        num_columns_(texts.unequal_hypothesis().size()) {
    constexpr std::size_t kMostPairs = std::size_t{1} << 30;
    if (num_columns_ > 0 && num_rows_ > kMostPairs / num_columns_) {
      throw Error(ErrorKind::kInvalidArgument,
                  "word errors: an alignment of " + std::to_string(num_rows_) + " with " +
                      std::to_string(num_columns_) +
                      " words needs a byte for each pair; cut them into utterances");
    }
    steps_.reserve(num_rows_ * num_columns_);
    align(texts, costs, [this](Cell cell) {
      steps_.push_back(static_cast<std::uint8_t>((cell & kStep) >> kStepBit));
    });
  }

  /// Of the first i words of the reference and j of the hypothesis, one of both not 0.
  Cell at(std::size_t i, std::size_t j) const {
    if (i > num_rows_) return 0;  // equal to the end
    if (i == 0 || j == 0) return i == 0 ? kInserted : kDeleted;
    return Cell{steps_[(i - 1) * num_columns_ + j - 1]} << kStepBit;
  }

 private:
  std::size_t num_rows_, num_columns_;
  std::vector<std::uint8_t> steps_;
};

double ratio(std::int64_t part, std::int64_t whole) {
  if (part == 0) return 0;
  if (whole == 0) return std::numeric_limits<double>::infinity();
  return static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

WordErrors& WordErrors::operator+=(const WordErrors& other) {
  num_words += other.num_words;
  substitutions += other.substitutions;
  deletions += other.deletions;
  insertions += other.insertions;
  num_utterances += other.num_utterances;
  wrong_utterances += other.wrong_utterances;
  return *this;
}

double WordErrors::word_error_rate() const { return ratio(errors(), num_words); }

double WordErrors::sentence_error_rate() const { return ratio(wrong_utterances, num_utterances); }

WordErrors count_word_errors(std::string_view reference, std::string_view hypothesis,
                             const WordErrorOptions& options) {
  const Texts texts = read(reference, hypothesis, options);
  const std::int64_t num_expected = std::ssize(texts.reference);
  const std::int64_t num_recognised = std::ssize(texts.hypothesis);
  const Cell best = align(texts, options.costs, [](Cell) {});
  const auto cost = static_cast<std::int64_t>(best >> kCostBit);
  const auto deletions = static_cast<std::int64_t>(best & kDeletions);
  const std::int64_t insertions = num_recognised - num_expected + deletions;
  const std::int64_t of_pairs =
      cost - options.costs.deletion * deletions - options.costs.insertion * insertions;
  return {.num_words = num_expected,
          .substitutions = of_pairs / options.costs.substitution,
          .deletions = deletions,
          .insertions = insertions,
          .num_utterances = 1,
          .wrong_utterances = cost == 0 ? 0 : 1};
}

std::vector<WordEdit> align_words(std::string_view reference, std::string_view hypothesis,
                                  const WordErrorOptions& options) {
  const Texts texts = read(reference, hypothesis, options);
  const std::vector<std::string_view> expected = split(reference), recognised = split(hypothesis);
  const Steps steps(texts, options.costs);
  std::vector<WordEdit> edits;
  for (std::size_t i = expected.size(), j = recognised.size(); i > 0 || j > 0;) {
    const Cell step = steps.at(i, j);
    if (step == kInserted) {
      edits.push_back({WordEditKind::kInsertion, {}, recognised[--j]});
    } else if (step == kDeleted) {
      edits.push_back({WordEditKind::kDeletion, expected[--i], {}});
    } else {
      const bool is_equal = texts.reference[--i] == texts.hypothesis[--j];
      const auto kind = is_equal ? WordEditKind::kMatch : WordEditKind::kSubstitution;
      edits.push_back({kind, expected[i], recognised[j]});
    }
  }
  std::ranges::reverse(edits);
  return edits;
}

}  // namespace trireme::speech
