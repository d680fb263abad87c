#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "packs/text/data/span_corruption.h"
#include "packs/text/data/token_shards.h"
#include "trireme/data.h"

namespace trireme::text {

/// What a sample is. All of it changes results.
struct DenoisingOptions {
  std::int64_t inputs = 512;  ///< Tokens of a sample's inputs, at most; targets follow from it.
  data::SpanOptions spans;
  data::SpecialTokens special;  ///< Of the tokenizer.
  std::uint64_t seed = 0;       ///< Of the spans.
};

/// T5's denoising over the tokens of a split: sample i hides spans of the i-th run of L tokens,
/// other ones on each visit. L is what longest_span_lengths gives: 568 for 512 inputs and 114
/// targets. Runs go over the ends of documents; tokens after the last full run are left out.
///
/// Fields   `inputs` [inputs] i32, `targets` [targets] i32, of `lengths`: no padding.
class DenoisingSource : public data::Source {
 public:
  /// Errors   kInvalidArgument for options that corrupt_spans refuses, or fewer tokens than one
  ///          sample has.
  DenoisingSource(TokenShards shards, const DenoisingOptions& options);

  std::int64_t num_samples() const override { return shards_.num_tokens() / lengths_.tokens; }
  const std::vector<data::Field>& fields() const override { return fields_; }
  void read(data::Sample sample, std::span<const std::span<std::byte>> destinations) const override;

  /// What `read` copies out. Errors as there.
  data::CorruptedText text_of(data::Sample sample) const;

  /// A hash of the tokens and the options.
  std::string identity() const override;

  /// Tokens of a sample's text, inputs and targets.
  const data::SpanLengths& lengths() const { return lengths_; }

 private:
  TokenShards shards_;
  DenoisingOptions options_;
  data::SpanLengths lengths_;
  std::vector<data::Field> fields_;
};

}  // namespace trireme::text
