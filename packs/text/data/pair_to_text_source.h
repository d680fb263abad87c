#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "packs/text/data/labelled_pairs.h"
#include "packs/text/data/labelled_rows.h"
#include "packs/text/data/tokenizer.h"
#include "trireme/data.h"

namespace trireme::text {

/// What a sample is. All of it changes results.
struct PairToTextOptions {
  std::int64_t inputs = 128;  ///< Tokens of a sample's inputs at most, the end token too.
  /// Lengths of inputs that are padded to beside the longest, ascending; none: all are as long.
  std::vector<std::int64_t> padded;
  bool has_lengths =
      false;  ///< Samples have lengths of their own, also where `padded` is empty: for data::pack.
  PairColumns columns;
  std::vector<std::string> labels;  ///< That there may be; none: those of the files, sorted.
};

/// Pairs of texts with labels, of tables, as T5 is fine-tuned on: a text in, a text out. Sample i is pair
/// i of the first file, then of the next one.
///
///     inputs    premise: the cat sat hypothesis: it sat on a mat <end>
///     targets   neutral <end>
///
/// Before each text stands the name of its column; while inputs are too long, the longer text loses its last token.
///
/// Lengths  `inputs`, where samples are padded to several, or `has_lengths`.
/// Fields   all i32: `inputs` [inputs] and `targets` [those of the longest label], padding behind them; `label` [], its
///          number; `file` [], from which of the files it is.
/// Cost     all tokens in memory, 4 bytes each.
/// Source   Raffel et al., JMLR 21 (2020), section 2.4 and appendix D.
class PairToTextSource : public data::Source {
 public:
  /// Errors   those of read_classified_pairs; kInvalidArgument where inputs have no room for a token of each text.
  PairToTextSource(std::vector<std::filesystem::path> files, const Tokenizer& tokenizer,
                   PairToTextOptions options);

  std::int64_t num_samples() const override { return rows_.size(); }
  const std::vector<data::Field>& fields() const override { return fields_; }
  void read(data::Sample sample, std::span<const std::span<std::byte>> destinations) const override;
  std::vector<data::Lengths> padded_lengths() const override { return padded_; }
  data::Lengths lengths_of(data::Sample sample) const override;

  /// A sample before it is padded. kInvalidArgument where there is no such one.
  LabelledRow pair(std::int64_t index) const;

  /// A hash of the tokens, of labels too, and the length.
  std::string identity() const override;

  const std::vector<std::string>& labels() const { return options_.labels; }
  /// The tokens of each label, the end token too.
  const std::vector<std::vector<Token>>& targets() const { return targets_; }
  const std::vector<std::filesystem::path>& files() const { return files_; }

 private:
  void add(const ClassifiedPairs::Pair& one, const Tokenizer& tokenizer);

  std::vector<std::filesystem::path> files_;
  PairToTextOptions options_;
  Token padding_;
  std::vector<Token> before_first_, before_second_;
  std::vector<std::vector<Token>> targets_;
  LabelledRows rows_;
  std::vector<data::Field> fields_;
  std::vector<data::Lengths> padded_;
};

}  // namespace trireme::text
