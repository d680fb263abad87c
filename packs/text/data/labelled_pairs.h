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

/// The pairs of several files, with their labels as numbers.
struct ClassifiedPairs {
  struct Pair {
    LabelledPair pair;
    std::int32_t label = 0;  ///< Index into `labels`.
    std::int32_t file = 0;
  };
  std::vector<std::string> labels;
  std::vector<Pair> pairs;  ///< File by file, in their order.
};

/// labels   those that there may be, in their order; none: those of the files, sorted.
/// Errors   those of read_labelled_pairs; kInvalidArgument for no file, labels that are there twice or fewer than two,
///          and, naming file and line, another label.
ClassifiedPairs read_classified_pairs(const std::vector<std::filesystem::path>& files,
                                      const PairColumns& columns, std::vector<std::string> labels);

}  // namespace trireme::text
