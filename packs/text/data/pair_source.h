#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "packs/text/data/masking.h"
#include "packs/text/data/token_shards.h"
#include "packs/text/data/word_pieces.h"
#include "trireme/data.h"

namespace trireme::text {

/// What a sample is. All of it changes results.
struct PairOptions {
  std::int64_t length = 128;  ///< Tokens of a sample at most, the three special ones too.
  MaskingOptions masking;
  double short_probability = 0.1;   ///< Part of the samples that are as short as chance has it.
  double random_probability = 0.5;  ///< Part whose second segment comes from elsewhere.
  PairTokens special;               ///< Of the tokenizer.
  std::uint64_t seed = 0;           ///< Of all that chance decides.
};

/// A sample before it is padded.
struct SegmentPair {
  MaskedText text;         ///< [CLS] first [SEP] second [SEP].
  std::size_t second = 0;  ///< Where the second segment begins.
  bool is_random = false;  ///< Whether it comes from another passage.
};

/// BERT's samples over the passages of a split (encoder_of in document_encoder.h): the sentences of
/// each passage are grouped, in order, until a group has as many tokens as a sample takes or the
/// passage ends; sample i is made of group i, in other ways on each visit:
///
///     A    the first sentences of the group, how many of them chance says
///     B    the other ones; or, of half of the samples, sentences of another passage, from one on
///          that chance picks
///
/// What is too long loses tokens of the longer segment, at either end. A group of one sentence is
/// cut within it. So samples are short where passages end, and some at random.
///
/// Fields   all i32: `tokens` [length], `types` [length] (0: [CLS] A [SEP], 1: B [SEP]), `length` [];
///          `positions`, `hidden` [max_predictions], `predictions` []; `is_random` []. Behind the
///          numbers that count all is 0, tokens are padding.
/// Cost     16 bytes of memory a sentence; making one reads all tokens once.
/// Source   Devlin et al., NAACL 2019, appendix A.2; `create_pretraining_data` of
///          google-research/bert.
class PairSource : public data::Source {
 public:
  /// Errors   kInvalidArgument for lengths below 5, other options out of range, or tokens without
  ///          two sentences of different passages.
  PairSource(TokenShards shards, const PairOptions& options);

  std::int64_t num_samples() const override { return std::ssize(groups_); }
  const std::vector<data::Field>& fields() const override { return fields_; }
  void read(data::Sample sample, std::span<const std::span<std::byte>> destinations) const override;

  /// What `read` pads and copies out. Errors as there.
  SegmentPair pair_of(data::Sample sample) const;

  /// A hash of the tokens and the options.
  std::string identity() const override;

 private:
  /// A run of tokens without a special one.
  struct Sentence {
    std::int64_t begin;
    std::int32_t length;
    std::int32_t passage;
  };
  /// Sentences [begin, end) of one passage.
  struct Group {
    std::int64_t begin, end;
  };

  struct Segments {
    std::vector<Token> first, second;
    bool is_random = false;
  };

  const Sentence& sentence(std::int64_t i) const { return sentences_[static_cast<std::size_t>(i)]; }
  void find_sentences();
  void find_groups();
  std::vector<Token> read_sentences(Group group, std::int64_t enough, std::int64_t& end) const;
  Segments segments_of(Group group, std::int64_t most, Draws& draws) const;
  std::vector<Token> elsewhere(std::int32_t passage, std::int64_t enough, Draws& draws) const;

  TokenShards shards_;
  PairOptions options_;
  std::vector<Sentence> sentences_;
  std::vector<Group> groups_;
  std::vector<data::Field> fields_;
};

}  // namespace trireme::text
