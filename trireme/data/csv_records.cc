#include "trireme/data/csv_records.h"

#include <utf8.h>

#include <algorithm>
#include <functional>
#include <span>
#include <string_view>
#include <utility>

#include "trireme/base/sha256.h"
#include "trireme/data/named_read.h"
#include "trireme/error.h"

namespace trireme::data {
namespace {

constexpr std::string_view kCsv = "CSV";
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "'" : ", '") + name + "'";
  return text;
}

/// What is wrong with names of columns; nothing where they are good.
std::string problem_of(const std::vector<std::string>& names) {
  for (auto name = names.begin(); name != names.end(); ++name) {
    if (name->empty()) return "has a column without a name among " + list_of(names);
    if (!utf8::is_valid(*name)) return "has a column whose name is not UTF-8";
    if (std::find(names.begin(), name, *name) != name) return "has two columns '" + *name + "'";
  }
  return {};
}

}  // namespace

/// The rows of a shard whose bytes arrive in pieces.
class CsvRecords::ShardReader {
 public:
  using TakeHeader = std::function<void(const std::vector<std::string>& names)>;
  /// Gets a row's beginning and how many values it has.
  using TakeRow = std::function<void(std::int64_t begin, std::size_t num_values)>;

  /// Without `take_header` the first row is one as the others.
  ShardReader(const CsvRecords& records, int shard, TakeHeader take_header, TakeRow take_row)
      : records_(records),
        shard_(shard),
        take_header_(std::move(take_header)),
        take_row_(std::move(take_row)),
        rows_(records.format_) {}

  void add(std::span<const std::byte> piece) {
    std::string_view text(reinterpret_cast<const char*>(piece.data()), piece.size());
    if (at_ == 0 && text.starts_with(kByteOrderMark)) {
      text.remove_prefix(kByteOrderMark.size());
      begin_ = at_ = std::ssize(kByteOrderMark);
    }
    while (!text.empty()) {
      const std::string_view part = text.substr(0, text.find('\n') + 1);  // all where there is none
      add_line(part.empty() ? text : part);
      text.remove_prefix(part.empty() ? text.size() : part.size());
    }
  }

  void finish() {
    step([&] { return take_if(rows_.finish()); });
  }

 private:
  /// A line, or a part of one.
  void add_line(std::string_view line) {
    const bool is_first = at_ == begin_;  // of its row
    const bool is_blank = is_first && (line == "\n" || line == "\r\n");
    const std::size_t num_plain = is_first && !take_header_ ? rows_.num_plain_values(line) : 0;
    at_ += std::ssize(line);
    if (is_blank) {
      begin_row();
    } else if (num_plain > 0) {
      step([&] { return take_row_(begin_, num_plain), true; });
    } else {
      step([&] { return take_if(rows_.add(line)); });
    }
    if (line.ends_with('\n')) ++line_;
  }

  bool take_if(bool is_row_over) {
    if (!is_row_over) return false;
    if (const TakeHeader take_header = std::exchange(take_header_, nullptr)) {
      take_header(rows_.values());
    } else {
      take_row_(begin_, rows_.values().size());
    }
    return true;
  }

  /// `action` returns whether a row is over.
  template <typename Action>
  void step(Action action) {
    try {
      if (!action()) return;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kCorruptData) throw;
      const std::string end = line_ == first_line_ ? "" : " to " + std::to_string(line_);
      records_.shards_.refuse(shard_,
                              "line " + std::to_string(first_line_) + end + ": " + error.message());
    }
    begin_row();
  }

  /// Behind the line that has just been taken.
  void begin_row() {
    begin_ = at_;
    first_line_ = line_ + 1;
  }

  const CsvRecords& records_;
  int shard_;
  TakeHeader take_header_;  // until the header is there
  TakeRow take_row_;
  CsvRows rows_;
  std::int64_t at_ = 0, begin_ = 0;         // begin_: of the row, after the one before
  std::int64_t line_ = 1, first_line_ = 1;  // first_line_: of the row
};

CsvRecords::CsvRecords(std::vector<std::filesystem::path> shards, CsvOptions options)
    : format_(options.format),
      has_header_(options.columns.empty()),
      shards_(std::string(kCsv), std::move(shards), options.packed),
      columns_(std::move(options.columns)) {
  if (const std::string problem = problem_of(columns_); !problem.empty()) {
    throw Error(ErrorKind::kInvalidArgument, "CSV: what is given " + problem);
  }
  for (int shard = 0; shard < shards_.size(); ++shard) add_shard(shard);
}

void CsvRecords::take_header(int shard, const std::vector<std::string>& names) {
  if (const std::string problem = problem_of(names); !problem.empty()) {
    throw Error(ErrorKind::kCorruptData, problem);
  }
  if (shard == 0) columns_ = names;
  if (names == columns_) return;
  throw Error(ErrorKind::kCorruptData, "the columns are " + list_of(names) +
                                           "; expected those of '" + shards_.path(0).string() +
                                           "': " + list_of(columns_));
}

void CsvRecords::add_shard(int shard) {
  ShardReader::TakeHeader take_names;
  if (has_header_) take_names = [&](const auto& names) { take_header(shard, names); };
  const auto take_row = [&](std::int64_t begin, std::size_t num_values) {
    if (num_values != columns_.size()) {
      throw Error(ErrorKind::kCorruptData,
                  "there are " + std::to_string(num_values) + " columns; expected " +
                      std::to_string(columns_.size()) + ": " + list_of(columns_));
    }
    index_.add(begin);
  };
  ShardReader reader(*this, shard, take_names, take_row);
  shards_.scan(shard, [&](std::span<const std::byte> piece) { reader.add(piece); });
  reader.finish();
  if (index_.finish_shard(shards_.num_bytes(shard)) == 0) shards_.refuse(shard, "has no rows");
}

std::vector<std::string> CsvRecords::fields(std::int64_t index) const {
  index_.at(index, kCsv);
  return columns_;
}

std::vector<std::byte> CsvRecords::read(std::int64_t index, std::string_view field) const {
  const RecordIndex::Place place = index_.at(index, kCsv);
  const auto column = std::ranges::find(columns_, field);
  if (column == columns_.end()) {
    throw Error(ErrorKind::kInvalidArgument, name(index) + " has no field '" + std::string(field) +
                                                 "'; it has " + list_of(columns_));
  }
  const std::string text = read_for(
      *this, index, field, [&] { return shards_.read_text(place.shard, place.begin, place.end); });
  CsvRows rows(format_);
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    if (rows.add(std::string_view(text).substr(begin, end - begin))) break;
    begin = end;
  }
  if (begin >= text.size()) rows.finish();
  const std::vector<std::string>& values = rows.values();
  if (values.size() != columns_.size()) {
    throw Error(ErrorKind::kCorruptData, name(index) + " has changed since it was opened");
  }
  const std::string& value = values[static_cast<std::size_t>(column - columns_.begin())];
  if (!utf8::is_valid(value)) {
    throw Error(ErrorKind::kCorruptData, name(index) + ": field '" + std::string(field) +
                                             "' is not UTF-8; convert the file");
  }
  const auto bytes = std::as_bytes(std::span(value));
  return {bytes.begin(), bytes.end()};
}

std::string CsvRecords::name(std::int64_t index) const {
  const RecordIndex::Place place = index_.at(index, kCsv);
  return "row " + std::to_string(place.number + 1) + " of '" + shards_.path(place.shard).string() +
         "'";
}

std::string CsvRecords::identity() const {
  Sha256 hash;
  const std::string columns = std::string(kCsv) + list_of(columns_);
  hash.add(std::as_bytes(std::span(columns)));
  index_.add_to(hash);
  return hash.finish();
}

}  // namespace trireme::data
