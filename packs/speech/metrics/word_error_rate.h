#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace trireme::speech {

/// Errors of recognised utterances, counted. Counts of parts (batches, ranks) add up to those of
/// the whole.
struct WordErrors {
  std::int64_t num_words = 0;  ///< Of the references.
  std::int64_t substitutions = 0;
  std::int64_t deletions = 0;   ///< Words of the reference that are missing.
  std::int64_t insertions = 0;  ///< Words that are not in the reference.
  std::int64_t num_utterances = 0;
  std::int64_t wrong_utterances = 0;  ///< With an error or more.

  WordErrors& operator+=(const WordErrors& other);
  bool operator==(const WordErrors&) const = default;

  std::int64_t errors() const { return substitutions + deletions + insertions; }
  std::int64_t correct_words() const { return num_words - substitutions - deletions; }

  /// errors / num_words, which may exceed 1; 0 / 0 is 0, and errors without words are infinity.
  double word_error_rate() const;

  /// wrong_utterances / num_utterances; 0 / 0 is 0.
  double sentence_error_rate() const;
};

/// What an alignment of two word sequences costs, 1 or more each; the cheapest one is counted.
struct AlignmentCosts {
  std::int32_t substitution = 1;
  std::int32_t deletion = 1;
  std::int32_t insertion = 1;

  /// Of NIST's sclite, for counts as it prints them. Errors can exceed the edit distance then: 3
  /// deletions and 3 insertions cost less than 5 substitutions.
  static constexpr AlignmentCosts sclite() { return {4, 3, 3}; }
};

struct WordErrorOptions {
  AlignmentCosts costs;
  bool ignores_case = false;  ///< Of ASCII letters; others are compared byte by byte.
};

/// Errors of one utterance by the cheapest alignment of its words with the reference's. Words are
/// separated by ASCII white space, so UTF-8 stays whole. Among alignments of equal cost the one is
/// counted that, read from the end, prefers a match or substitution to an insertion to a deletion.
///
/// Errors   kInvalidArgument for costs below 1; for 2^24 words, or words that cost 2^38.
/// Cost     words of the reference times words of the hypothesis; memory for one row.
/// Source   Levenshtein, "Binary codes capable of correcting deletions, insertions, and reversals",
///          1966; Wagner and Fischer, "The string-to-string correction problem", 1974.
WordErrors count_word_errors(std::string_view reference, std::string_view hypothesis,
                             const WordErrorOptions& options = {});

enum class WordEditKind : std::uint8_t { kMatch, kSubstitution, kInsertion, kDeletion };

/// A place of an alignment: a word of the reference beside the one that was recognised.
struct WordEdit {
  WordEditKind kind = WordEditKind::kMatch;
  std::string_view reference;   ///< Empty where a word was inserted.
  std::string_view hypothesis;  ///< Empty where one was deleted.

  bool operator==(const WordEdit&) const = default;
};

/// The alignment that `count_word_errors` counts, from the first word on. Its rule for equal costs
/// leaves one: "a b" for "b" and costs of 1 is a deletion and a match; "a b" for "c" a deletion and
/// a substitution, since from the end b is paired first.
///
/// Returns  words as parts of the texts, with their own case, which have to outlive them.
/// Errors   also kInvalidArgument for more than 2^30 pairs of words, those aside that are equal at
///          the end.
/// Cost     as counting; memory of one byte for each of these pairs.
std::vector<WordEdit> align_words(std::string_view reference, std::string_view hypothesis,
                                  const WordErrorOptions& options = {});

}  // namespace trireme::speech
