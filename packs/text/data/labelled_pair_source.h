#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "packs/text/data/labelled_pairs.h"
#include "packs/text/data/labelled_rows.h"
#include "packs/text/data/word_pieces.h"
#include "trireme/data.h"

namespace trireme::text {

/// What a sample is. All of it changes results.
struct LabelledPairOptions {
  std::int64_t length = 128;  ///< Tokens of a sample at most, the three special ones too.
  /// Lengths that are padded to beside the longest, ascending; none: all are as long (data::Source::padded_lengths).
  std::vector<std::int64_t> padded;
  PairColumns columns;
  std::vector<std::string> labels;  ///< By class; none: those of the files, sorted.
};

/// Pairs of texts with labels, of tables, as BERT is fine-tuned on: sample i is pair i of the first
/// file, then of the next one.
///
/// Tokens are [CLS] first [SEP] second [SEP]; while they are too many, the longer text loses its last
/// one, and the second where both are as long.
///
/// Lengths  `tokens`, where samples are padded to several.
/// Fields   all i32: `tokens` [length], `types` [length] (0: [CLS] first [SEP], 1: second [SEP]),
///          `length` [], `label` [], the class; `file` [], from which of the files it is. Behind the
///          numbers that count `types` is 0, tokens are padding.
/// Cost     all tokens in memory, 4 bytes each.
/// Source   Devlin et al., NAACL 2019, section 4.1; `run_classifier` of google-research/bert.
class LabelledPairSource : public data::Source {
 public:
  /// Errors   those of read_classified_pairs; kInvalidArgument for a length below 5.
  LabelledPairSource(std::vector<std::filesystem::path> files, const WordPieces& pieces,
                     LabelledPairOptions options);

  std::int64_t num_samples() const override { return rows_.size(); }
  const std::vector<data::Field>& fields() const override { return fields_; }
  void read(data::Sample sample, std::span<const std::span<std::byte>> destinations) const override;
  std::vector<data::Lengths> padded_lengths() const override { return padded_; }
  data::Lengths lengths_of(data::Sample sample) const override;

  /// A sample before it is padded. kInvalidArgument where there is no such one.
  LabelledRow pair(std::int64_t index) const;

  /// A hash of the tokens, the labels and the length.
  std::string identity() const override;

  const std::vector<std::string>& labels() const { return options_.labels; }
  const std::vector<std::filesystem::path>& files() const { return files_; }

 private:
  void add(const ClassifiedPairs::Pair& one, const WordPieces& pieces);

  std::vector<std::filesystem::path> files_;
  LabelledPairOptions options_;
  PairTokens special_;
  LabelledRows rows_;
  std::vector<data::Field> fields_;
  std::vector<data::Lengths> padded_;
};

}  // namespace trireme::text
