#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "packs/text/data/labelled_pairs.h"
#include "packs/text/data/span_corruption.h"

namespace trireme::text {

/// A pair of texts as tokens, its label and its file as numbers.
struct LabelledRow {
  std::span<const data::Token> tokens;
  std::size_t second = 0;  ///< Where the second text begins.
  std::int32_t label = 0;
  std::int32_t file = 0;
};

/// Rows of tokens, one after another in memory.
class LabelledRows {
 public:
  /// tokens   of `one`, as a model takes them.
  void add(const ClassifiedPairs::Pair& one, std::span<const data::Token> tokens,
           std::size_t second);

  std::int64_t size() const { return static_cast<std::int64_t>(rows_.size()); }

  /// kInvalidArgument, saying what the rows are, where there is no such row.
  LabelledRow at(std::int64_t index, const std::string& what) const;

  /// Of all that was added: hexadecimal sha256.
  std::string hash() const;

 private:
  struct Row {
    std::int64_t begin;  ///< In tokens_.
    std::int32_t length;
    std::int32_t second;
    std::int32_t label;
    std::int32_t file;
  };

  std::vector<data::Token> tokens_;
  std::vector<Row> rows_;
};

}  // namespace trireme::text
