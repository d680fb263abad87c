#include "trireme/evaluate/speech/word_error_rate.h"

#include <algorithm>
#include <limits>
#include <string>
#include <unordered_map>
#include <vector>

namespace trireme::evaluate {
namespace {

/// Words as numbers, equal where the words are.
class Words {
 public:
  explicit Words(bool ignores_case) : ignores_case_(ignores_case) {}

  std::vector<std::int32_t> split(std::string_view text) {
    constexpr std::string_view kSpaces = " \t\n\v\f\r";
    std::vector<std::int32_t> words;
    std::size_t begin = text.find_first_not_of(kSpaces);
    while (begin != std::string_view::npos) {
      const std::size_t end = std::min(text.find_first_of(kSpaces, begin), text.size());
      words.push_back(number(text.substr(begin, end - begin)));
      begin = text.find_first_not_of(kSpaces, end);
    }
    return words;
  }

 private:
  std::int32_t number(std::string_view text) {
    std::string word(text);
    if (ignores_case_) {
      for (char& c : word) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    const auto next = static_cast<std::int32_t>(numbers_.size());
    return numbers_.emplace(std::move(word), next).first->second;
  }

  const bool ignores_case_;
  std::unordered_map<std::string, std::int32_t> numbers_;
};

/// The cheapest alignment of the beginnings of both sequences, by its errors.
struct Cell {
  std::int64_t cost = 0;
  std::int64_t substitutions = 0;
  std::int64_t deletions = 0;
  std::int64_t insertions = 0;
};

Cell align(const std::vector<std::int32_t>& reference, const std::vector<std::int32_t>& hypothesis,
           const AlignmentCosts& costs) {
  const auto deleted = [&](Cell cell) {
    cell.cost += costs.deletion;
    ++cell.deletions;
    return cell;
  };
  const auto inserted = [&](Cell cell) {
    cell.cost += costs.insertion;
    ++cell.insertions;
    return cell;
  };
  const auto paired = [&](Cell cell, bool is_equal) {
    cell.cost += is_equal ? 0 : costs.substitution;
    cell.substitutions += is_equal ? 0 : 1;
    return cell;
  };
  std::vector<Cell> row(hypothesis.size() + 1);  // of the reference's words so far
  for (std::size_t j = 0; j < hypothesis.size(); ++j) row[j + 1] = inserted(row[j]);
  for (const std::int32_t word : reference) {
    Cell diagonal = row[0];
    row[0] = deleted(row[0]);
    for (std::size_t j = 0; j < hypothesis.size(); ++j) {
      const Cell above = row[j + 1];
      const auto cheaper = [](const Cell& a, const Cell& b) { return b.cost < a.cost ? b : a; };
      row[j + 1] = cheaper(cheaper(paired(diagonal, word == hypothesis[j]), inserted(row[j])),
                           deleted(above));
      diagonal = above;
    }
  }
  return row.back();
}

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
  Words words(options.ignores_case);
  const auto expected = words.split(reference);
  const auto recognised = words.split(hypothesis);
  const Cell all = align(expected, recognised, options.costs);
  return {.num_words = std::ssize(expected),
          .substitutions = all.substitutions,
          .deletions = all.deletions,
          .insertions = all.insertions,
          .num_utterances = 1,
          .wrong_utterances = expected == recognised ? 0 : 1};
}

}  // namespace trireme::evaluate
