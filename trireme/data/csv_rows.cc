#include "trireme/data/csv_rows.h"

#include <csv.h>

#include "trireme/error.h"

namespace trireme::data {
namespace {

[[noreturn]] void refuse_row(const std::string& problem) {
  throw Error(ErrorKind::kCorruptData, problem);
}

}  // namespace

struct CsvRows::Parser {
  csv_parser parser = {};
  std::vector<std::string>
      values;  // of which the first num_values are there: their memory is used again
  std::size_t num_values = 0;
  int num_rows = 0;  // that ended in this call

  static void take_value(void* text, std::size_t bytes, void* self) {
    auto& row = *static_cast<Parser*>(self);
    if (row.num_values == row.values.size()) row.values.emplace_back();
    row.values[row.num_values++].assign(static_cast<const char*>(text), bytes);
  }

  static void take_row(int /*letter*/, void* self) { ++static_cast<Parser*>(self)->num_rows; }

  void begin() {
    if (num_rows > 0) num_values = 0;
    num_rows = 0;
  }

  bool is_row_over() {
    if (num_rows > 1) {
      refuse_row("lines end in a carriage return alone; expected a line feed, or both");
    }
    if (num_rows == 1) values.resize(num_values);
    return num_rows == 1;
  }
};

CsvRows::CsvRows(CsvFormat format) : parser_(std::make_unique<Parser>()), format_(format) {
  csv_parser& parser = parser_->parser;
  if (csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI) != 0) {
    throw Error(ErrorKind::kResourceExhausted, "no parser for rows of CSV");
  }
  csv_set_delim(&parser, static_cast<unsigned char>(format.separator));
  // None: a NUL, which then is refused like a quote that stands alone.
  csv_set_quote(&parser, format.has_quotes ? CSV_QUOTE : 0);
  constexpr std::size_t kGrowBytes = 4096;  // of a value's buffer; 128 are copied often
  csv_set_blk_size(&parser, kGrowBytes);
  csv_set_space_func(&parser, [](unsigned char) { return 0; });
}

CsvRows::~CsvRows() { csv_free(&parser_->parser); }

bool CsvRows::add(std::string_view line) {
  parser_->begin();
  csv_parser& parser = parser_->parser;
  const std::size_t taken = csv_parse(&parser, line.data(), line.size(), Parser::take_value,
                                      Parser::take_row, parser_.get());
  if (taken == line.size()) return parser_->is_row_over();
  if (csv_error(&parser) != CSV_EPARSE) {
    throw Error(ErrorKind::kResourceExhausted, csv_strerror(csv_error(&parser)));
  }
  refuse_row(
      "a quote stands within a value, or something behind a closing quote; expected values with "
      "quotes to stand in quotes, a quote in them twice, or has_quotes to be false");
}

bool CsvRows::finish() {
  parser_->begin();
  csv_parser& parser = parser_->parser;
  if (csv_fini(&parser, Parser::take_value, Parser::take_row, parser_.get()) != 0) {
    refuse_row("a quote is open where the file ends");
  }
  return parser_->is_row_over();
}

std::size_t CsvRows::num_plain_values(std::string_view line) const {
  if (!line.ends_with('\n')) return 0;
  line.remove_suffix(line.ends_with("\r\n") ? 2 : 1);
  if (line.empty()) return 0;
  const auto is_special = [&](char letter) {
    return letter == '"' ? format_.has_quotes : letter == '\r' || letter == '\0';
  };
  for (std::size_t count = 1;; ++count) {
    std::size_t end = 0;  // of the value
    if (format_.has_quotes && line.starts_with('"')) {
      end = line.find('"', 1);
      if (end == std::string_view::npos) return 0;
      ++end;
    } else {
      while (end < line.size() && line[end] != format_.separator) {
        if (is_special(line[end++])) return 0;
      }
    }
    if (end == line.size()) return count;
    if (line[end] != format_.separator) return 0;
    line.remove_prefix(end + 1);
  }
}

const std::vector<std::string>& CsvRows::values() const { return parser_->values; }

}  // namespace trireme::data
