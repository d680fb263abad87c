#include "packs/text/data/pair_to_text_source.h"

#include <algorithm>
#include <utility>

#include "packs/text/data/copy_fields.h"
#include "packs/text/data/shorten.h"
#include "trireme/base/json.h"
#include "trireme/base/sha256.h"
#include "trireme/error.h"

namespace trireme::text {
namespace {

constexpr const char* kPairsToText = "pairs to text";

std::vector<Token> with_end(std::vector<Token> tokens, Token end) {
  tokens.push_back(end);
  return tokens;
}

}  // namespace

PairToTextSource::PairToTextSource(std::vector<std::filesystem::path> files,
                                   const Tokenizer& tokenizer, PairToTextOptions options)
    : files_(std::move(files)),
      options_(std::move(options)),
      padding_(tokenizer.padding()),
      before_first_(tokenizer.encode(options_.columns.first + ": ")),
      before_second_(tokenizer.encode(" " + options_.columns.second + ": ")) {
  const std::int64_t least = std::ssize(before_first_) + std::ssize(before_second_) + 3;
  if (options_.inputs < least || options_.inputs > 1 << 20) {
    throw Error(ErrorKind::kInvalidArgument, std::string(kPairsToText) + ": inputs take " +
                                                 std::to_string(least) + " to 2^20 tokens, got " +
                                                 std::to_string(options_.inputs));
  }
  const ClassifiedPairs all =
      read_classified_pairs(files_, options_.columns, std::move(options_.labels));
  options_.labels = all.labels;
  std::int64_t longest = 0;
  for (const std::string& label : all.labels) {
    targets_.push_back(with_end(tokenizer.encode(label), tokenizer.end()));
    longest = std::max<std::int64_t>(longest, std::ssize(targets_.back()));
  }
  for (const ClassifiedPairs::Pair& pair : all.pairs) add(pair, tokenizer);
  padded_ = padded_to("inputs", options_.padded, options_.inputs);
  if (options_.has_lengths && padded_.empty()) padded_ = {{{"inputs", options_.inputs}}};
  fields_ = {{"inputs",
              Dtype::kI32,
              {options_.inputs},
              varying_first("inputs", padded_),
              double(padding_)},
             {"targets", Dtype::kI32, {longest}},
             {"label", Dtype::kI32, {}},
             {"file", Dtype::kI32, {}}};
}

void PairToTextSource::add(const ClassifiedPairs::Pair& one, const Tokenizer& tokenizer) {
  std::vector<Token> first = tokenizer.encode(one.pair.first),
                     second = tokenizer.encode(one.pair.second);
  shorten(first, second,
          options_.inputs - 1 - std::ssize(before_first_) - std::ssize(before_second_));
  std::vector<Token> tokens = before_first_;
  tokens.insert(tokens.end(), first.begin(), first.end());
  tokens.insert(tokens.end(), before_second_.begin(), before_second_.end());
  const std::size_t begin = tokens.size();
  tokens.insert(tokens.end(), second.begin(), second.end());
  tokens.push_back(tokenizer.end());
  rows_.add(one, tokens, begin);
}

LabelledRow PairToTextSource::pair(std::int64_t index) const {
  return rows_.at(index, kPairsToText);
}

void PairToTextSource::read(data::Sample sample,
                            std::span<const std::span<std::byte>> destinations) const {
  const LabelledRow one = pair(sample.index);
  copy_fields(fields_,
              {{{one.tokens.begin(), one.tokens.end()}, padding_},
               {targets_[static_cast<std::size_t>(one.label)], padding_},
               {{one.label}},
               {{one.file}}},
              destinations, kPairsToText, lengths_of(sample));
}

data::Lengths PairToTextSource::lengths_of(data::Sample sample) const {
  if (padded_.empty()) return {};
  return {{"inputs", std::ssize(pair(sample.index).tokens)}};
}

std::string PairToTextSource::identity() const {
  Json said = {{"kind", kPairsToText},
               {"pairs", rows_.hash()},
               {"inputs", options_.inputs},
               {"padding", padding_},
               {"targets", targets_}};
  if (!padded_.empty()) said["padded"] = options_.padded;
  return sha256(compact_text(said));
}

}  // namespace trireme::text
