#include "packs/text/data/labelled_rows.h"

#include "trireme/base/sha256.h"
#include "trireme/error.h"

namespace trireme::text {

void LabelledRows::add(const ClassifiedPairs::Pair& one, std::span<const data::Token> tokens,
                       std::size_t second) {
  rows_.push_back({.begin = std::ssize(tokens_),
                   .length = static_cast<std::int32_t>(tokens.size()),
                   .second = static_cast<std::int32_t>(second),
                   .label = one.label,
                   .file = one.file});
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
}

LabelledRow LabelledRows::at(std::int64_t index, const std::string& what) const {
  if (index < 0 || index >= size()) {
    throw Error(ErrorKind::kInvalidArgument, what + ": there is no sample " +
                                                 std::to_string(index) + " among " +
                                                 std::to_string(size()));
  }
  const Row& row = rows_[static_cast<std::size_t>(index)];
  return {.tokens = std::span(tokens_).subspan(static_cast<std::size_t>(row.begin),
                                               static_cast<std::size_t>(row.length)),
          .second = static_cast<std::size_t>(row.second),
          .label = row.label,
          .file = row.file};
}

std::string LabelledRows::hash() const {
  static_assert(sizeof(Row) == 24, "no byte of a row is padding");
  Sha256 hash;
  hash.add(std::as_bytes(std::span(tokens_)));
  hash.add(std::as_bytes(std::span(rows_)));
  return hash.finish();
}

}  // namespace trireme::text
