#include "packs/text/data/labelled_pair_source.h"

#include <algorithm>
#include <set>
#include <utility>

#include "packs/text/data/copy_fields.h"
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

using PairsOfFiles = std::vector<std::vector<LabelledPair>>;

std::vector<std::string> sorted_labels(const PairsOfFiles& files) {
  std::set<std::string> labels;
  for (const auto& pairs : files) {
    for (const LabelledPair& pair : pairs) labels.insert(pair.label);
  }
  return {labels.begin(), labels.end()};
}

std::string listed(const std::vector<std::string>& labels) {
  std::string text;
  for (const std::string& label : labels) text += (text.empty() ? "'" : ", '") + label + "'";
  return text;
}

void check_labels(const std::vector<std::string>& labels) {
  const std::set<std::string> distinct(labels.begin(), labels.end());
  if (labels.size() >= 2 && distinct.size() == labels.size()) return;
  refuse_labelled("expected two labels or more, each once, got " + listed(labels));
}

/// Takes the last token of the longer text, until both fit.
void shorten(std::vector<Token>& first, std::vector<Token>& second, std::int64_t most) {
  while (std::ssize(first) + std::ssize(second) > most) {
    (first.size() > second.size() ? first : second).pop_back();
  }
}

}  // namespace

LabelledPairSource::LabelledPairSource(std::vector<std::filesystem::path> files,
                                       const WordPieces& pieces, LabelledPairOptions options)
    : files_(std::move(files)), options_(std::move(options)), special_(pieces.special()) {
  if (files_.empty()) refuse_labelled("expected a file or more");
  if (options_.length < kLabelledSpecials + 2 || options_.length > 1 << 20) {
    refuse_labelled("a sample takes 5 to 2^20 tokens, got " + std::to_string(options_.length));
  }
  PairsOfFiles pairs;
  for (const auto& file : files_) pairs.push_back(read_labelled_pairs(file, options_.columns));
  if (options_.labels.empty()) options_.labels = sorted_labels(pairs);
  check_labels(options_.labels);
  for (std::size_t f = 0; f < files_.size(); ++f) {
    for (const LabelledPair& pair : pairs[f]) add(pair, static_cast<std::int32_t>(f), pieces);
  }
  fields_ = {{"tokens", Dtype::kI32, {options_.length}},
             {"types", Dtype::kI32, {options_.length}},
             {"length", Dtype::kI32, {}},
             {"label", Dtype::kI32, {}},
             {"file", Dtype::kI32, {}}};
}

void LabelledPairSource::add(const LabelledPair& pair, std::int32_t file,
                             const WordPieces& pieces) {
  const auto label = std::ranges::find(options_.labels, pair.label);
  if (label == options_.labels.end()) {
    throw Error(ErrorKind::kInvalidArgument,
                "'" + files_[static_cast<std::size_t>(file)].string() + "' line " +
                    std::to_string(pair.line) + ": expected one of the labels " +
                    listed(options_.labels) + ", got '" + pair.label + "'");
  }
  std::vector<Token> first = pieces.encode(pair.first), second = pieces.encode(pair.second);
  shorten(first, second, options_.length - kLabelledSpecials);
  const std::int64_t begin = std::ssize(tokens_);
  tokens_.push_back(special_.first);
  tokens_.insert(tokens_.end(), first.begin(), first.end());
  tokens_.push_back(special_.separator);
  tokens_.insert(tokens_.end(), second.begin(), second.end());
  tokens_.push_back(special_.separator);
  rows_.push_back({.begin = begin,
                   .length = static_cast<std::int32_t>(std::ssize(tokens_) - begin),
                   .second = static_cast<std::int32_t>(first.size()) + 2,
                   .label = static_cast<std::int32_t>(label - options_.labels.begin()),
                   .file = file});
}

LabelledPairSource::Pair LabelledPairSource::pair(std::int64_t index) const {
  if (index < 0 || index >= num_samples()) {
    refuse_labelled("there is no sample " + std::to_string(index) + " among " +
                    std::to_string(num_samples()));
  }
  const Row& row = rows_[static_cast<std::size_t>(index)];
  return {.tokens = std::span(tokens_).subspan(static_cast<std::size_t>(row.begin),
                                               static_cast<std::size_t>(row.length)),
          .second = static_cast<std::size_t>(row.second),
          .label = row.label,
          .file = row.file};
}

void LabelledPairSource::read(data::Sample sample,
                              std::span<const std::span<std::byte>> destinations) const {
  const Pair one = pair(sample.index);
  std::vector<std::int32_t> types(one.tokens.size(), 0);
  std::fill(types.begin() + static_cast<std::ptrdiff_t>(one.second), types.end(), 1);
  copy_fields(fields_,
              {{{one.tokens.begin(), one.tokens.end()}, special_.padding},
               {types},
               {{static_cast<std::int32_t>(one.tokens.size())}},
               {{one.label}},
               {{one.file}}},
              destinations, kLabelled);
}

std::string LabelledPairSource::identity() const {
  Sha256 hash;
  hash.add(std::as_bytes(std::span(tokens_)));
  hash.add(std::as_bytes(std::span(rows_)));
  return sha256(compact_text({{"kind", kLabelled},
                              {"pairs", hash.finish()},
                              {"length", options_.length},
                              {"padding", special_.padding},
                              {"labels", options_.labels}}));
}

}  // namespace trireme::text
