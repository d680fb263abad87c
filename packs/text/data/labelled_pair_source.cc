#include "packs/text/data/labelled_pair_source.h"

#include <algorithm>
#include <utility>

#include "packs/text/data/copy_fields.h"
#include "packs/text/data/shorten.h"
#include "trireme/base/json.h"
#include "trireme/base/sha256.h"
#include "trireme/error.h"

namespace trireme::text {
namespace {

constexpr std::int64_t kLabelledSpecials = 3;  // of a sample
constexpr const char* kLabelled = "labelled pairs";

[[noreturn]] void refuse_labelled(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, std::string(kLabelled) + ": " + problem);
}

}  // namespace

LabelledPairSource::LabelledPairSource(std::vector<std::filesystem::path> files,
                                       const WordPieces& pieces, LabelledPairOptions options)
    : files_(std::move(files)), options_(std::move(options)), special_(pieces.special()) {
  if (options_.length < kLabelledSpecials + 2 || options_.length > 1 << 20) {
    refuse_labelled("a sample takes 5 to 2^20 tokens, got " + std::to_string(options_.length));
  }
  const ClassifiedPairs all =
      read_classified_pairs(files_, options_.columns, std::move(options_.labels));
  options_.labels = all.labels;
  for (const ClassifiedPairs::Pair& pair : all.pairs) add(pair, pieces);
  padded_ = padded_to("tokens", options_.padded, options_.length);
  const auto varying = varying_first("tokens", padded_);
  fields_ = {{"tokens", Dtype::kI32, {options_.length}, varying, double(special_.padding)},
             {"types", Dtype::kI32, {options_.length}, varying},
             {"length", Dtype::kI32, {}},
             {"label", Dtype::kI32, {}},
             {"file", Dtype::kI32, {}}};
}

void LabelledPairSource::add(const ClassifiedPairs::Pair& one, const WordPieces& pieces) {
  std::vector<Token> first = pieces.encode(one.pair.first), second = pieces.encode(one.pair.second);
  shorten(first, second, options_.length - kLabelledSpecials);
  std::vector<Token> tokens = {special_.first};
  tokens.insert(tokens.end(), first.begin(), first.end());
  tokens.push_back(special_.separator);
  tokens.insert(tokens.end(), second.begin(), second.end());
  tokens.push_back(special_.separator);
  rows_.add(one, tokens, first.size() + 2);
}

LabelledRow LabelledPairSource::pair(std::int64_t index) const {
  return rows_.at(index, kLabelled);
}

void LabelledPairSource::read(data::Sample sample,
                              std::span<const std::span<std::byte>> destinations) const {
  const LabelledRow one = pair(sample.index);
  std::vector<std::int32_t> types(one.tokens.size(), 0);
  std::fill(types.begin() + static_cast<std::ptrdiff_t>(one.second), types.end(), 1);
  copy_fields(fields_,
              {{{one.tokens.begin(), one.tokens.end()}, special_.padding},
               {types},
               {{static_cast<std::int32_t>(one.tokens.size())}},
               {{one.label}},
               {{one.file}}},
              destinations, kLabelled, lengths_of(sample));
}

data::Lengths LabelledPairSource::lengths_of(data::Sample sample) const {
  if (padded_.empty()) return {};
  return {{"tokens", std::ssize(pair(sample.index).tokens)}};
}

std::string LabelledPairSource::identity() const {
  Json said = {{"kind", kLabelled},
               {"pairs", rows_.hash()},
               {"length", options_.length},
               {"padding", special_.padding},
               {"labels", options_.labels}};
  if (!padded_.empty()) said["padded"] = options_.padded;
  return sha256(compact_text(said));
}

}  // namespace trireme::text
