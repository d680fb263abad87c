#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::data {

/// How values stand in a file of rows. Changes results.
struct CsvFormat {
  char separator = ',';
  bool has_quotes =
      true;  ///< Values may stand in "..", then with separators, line feeds, and "" for a quote.
};

/// Rows of RFC 4180, line by line. Values keep the white space around them; lines without anything are left out.
/// Caller-synchronised.
class CsvRows {
 public:
  explicit CsvRows(CsvFormat format);
  ~CsvRows();
  CsvRows(const CsvRows&) = delete;
  CsvRows& operator=(const CsvRows&) = delete;

  /// Takes a line with its line feed, or a part of one. True where a row ends with it, whose values then are `values()`.
  ///
  /// Errors   kCorruptData, saying what is wrong, for a quote within a value, what stands behind a closing one, or rows
  ///          that end in a carriage return alone.
  bool add(std::string_view line);

  /// At the end of the file, whose last line may do without a line feed. As `add`; kCorruptData too where a quote is open.
  bool finish();

  /// How many values a line with its line feed has where it is a row that says so without being parsed, which costs a
  /// tenth: none that is quoted has a quote in it. 0 where `add` has to look, also for rows that are wrong.
  std::size_t num_plain_values(std::string_view line) const;

  /// Of the last row that has ended; until the next call.
  const std::vector<std::string>& values() const;

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
  CsvFormat format_;
};

}  // namespace trireme::data
