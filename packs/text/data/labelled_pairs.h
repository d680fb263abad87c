#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace trireme::text {

/// The columns of a table of pairs, by the names in its first line.
struct PairColumns {
  std::string first = "premise";
  std::string second = "hypothesis";
  std::string label = "label";
};

/// Two texts and what is said of them together.
struct LabelledPair {
  std::string first, second;
  std::string label;
  std::int64_t line = 0;  ///< Of the file, from 1.
};

/// The pairs of a TSV file in UTF-8, in its order: the first line names the columns, TABs stand
/// between these, quotes are text. Other columns may hold anything.
///
/// Errors   kInvalidArgument, naming file, line and what was expected: a column that is missing or
///          there twice, a line with more or fewer columns than the first, a pair without a label,
///          bytes that are not UTF-8, no pair at all; those of read_file.
/// Blocking; memory as large as the file.
std::vector<LabelledPair> read_labelled_pairs(const std::filesystem::path& file,
                                              const PairColumns& columns = {});

}  // namespace trireme::text
