#include "packs/text/data/labelled_pairs.h"

#include <utf8.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "trireme/base/files.h"
#include "trireme/error.h"

namespace trireme::text {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// The lines of a table, with their columns.
class Table {
 public:
  Table(std::filesystem::path file, std::string content)
      : file_(std::move(file)), content_(std::move(content)), rest_(content_) {
    if (rest_.starts_with(kByteOrderMark)) rest_.remove_prefix(kByteOrderMark.size());
  }

  /// The columns of the next line; they live as long as the table.
  std::optional<std::vector<std::string_view>> next() {
    if (rest_.empty()) return std::nullopt;
    ++line_;
    std::string_view text = rest_.substr(0, rest_.find('\n'));
    rest_.remove_prefix(std::min(text.size() + 1, rest_.size()));
    if (text.ends_with('\r')) text.remove_suffix(1);
    if (!utf8::is_valid(text.begin(), text.end())) refuse("expected UTF-8");
    std::vector<std::string_view> columns;
    for (;;) {
      const std::size_t end = text.find('\t');
      columns.push_back(text.substr(0, end));
      if (end == std::string_view::npos) return columns;
      text.remove_prefix(end + 1);
    }
  }

  std::int64_t line() const { return line_; }

  /// About the line that was read last.
  [[noreturn]] void refuse(const std::string& problem) const {
    throw Error(ErrorKind::kInvalidArgument,
                "'" + file_.string() + "' line " + std::to_string(line_) + ": " + problem);
  }

 private:
  std::filesystem::path file_;
  std::string content_;
  std::string_view rest_;
  std::int64_t line_ = 0;
};

std::size_t index_of(const std::string& name, const std::vector<std::string_view>& header,
                     const Table& table) {
  const auto found = std::ranges::find(header, name);
  if (found != header.end() && std::ranges::count(header, name) == 1) {
    return static_cast<std::size_t>(found - header.begin());
  }
  std::string names;
  for (const std::string_view one : header) {
    names += (names.empty() ? "'" : ", '") + std::string(one) + "'";
  }
  table.refuse("expected one column '" + name + "' among those of the header, which are " + names);
}

}  // namespace

std::vector<LabelledPair> read_labelled_pairs(const std::filesystem::path& file,
                                              const PairColumns& columns) {
  Table table(file, read_file(file));
  const auto header = table.next();
  if (!header) {
    throw Error(ErrorKind::kInvalidArgument,
                "'" + file.string() + "' is empty; expected a line with the names of its columns");
  }
  const std::size_t first = index_of(columns.first, *header, table);
  const std::size_t second = index_of(columns.second, *header, table);
  const std::size_t label = index_of(columns.label, *header, table);
  std::vector<LabelledPair> pairs;
  while (const auto row = table.next()) {
    if (row->size() != header->size()) {
      table.refuse("expected " + std::to_string(header->size()) +
                   " columns, as the header has, got " + std::to_string(row->size()));
    }
    if ((*row)[label].empty()) table.refuse("expected a label in column '" + columns.label + "'");
    pairs.push_back({.first = std::string((*row)[first]),
                     .second = std::string((*row)[second]),
                     .label = std::string((*row)[label]),
                     .line = table.line()});
  }
  if (pairs.empty()) table.refuse("expected pairs behind the header, there are none");
  return pairs;
}

namespace {

[[noreturn]] void refuse_classes(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, "labelled pairs: " + problem);
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
  refuse_classes("expected two labels or more, each once, got " + listed(labels));
}

std::int32_t class_of(const LabelledPair& pair, const std::vector<std::string>& labels,
                      const std::filesystem::path& file) {
  const auto label = std::ranges::find(labels, pair.label);
  if (label != labels.end()) return static_cast<std::int32_t>(label - labels.begin());
  throw Error(ErrorKind::kInvalidArgument,
              "'" + file.string() + "' line " + std::to_string(pair.line) +
                  ": expected one of the labels " + listed(labels) + ", got '" + pair.label + "'");
}

}  // namespace

ClassifiedPairs read_classified_pairs(const std::vector<std::filesystem::path>& files,
                                      const PairColumns& columns, std::vector<std::string> labels) {
  if (files.empty()) refuse_classes("expected a file or more");
  PairsOfFiles pairs;
  for (const auto& file : files) pairs.push_back(read_labelled_pairs(file, columns));
  if (labels.empty()) labels = sorted_labels(pairs);
  check_labels(labels);
  ClassifiedPairs all{.labels = std::move(labels), .pairs = {}};
  for (std::size_t f = 0; f < files.size(); ++f) {
    for (LabelledPair& pair : pairs[f]) {
      const std::int32_t label = class_of(pair, all.labels, files[f]);
      all.pairs.push_back({std::move(pair), label, static_cast<std::int32_t>(f)});
    }
  }
  return all;
}

}  // namespace trireme::text
