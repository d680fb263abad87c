#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace trireme::graph {

/// Rows of text printed with aligned columns, two spaces between them, numbers on the right.
class Table {
 public:
  /// Heads of the columns; one that begins with `>` (not printed) is aligned to the right.
  explicit Table(std::vector<std::string> heads);

  /// One cell per column.
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  bool is_empty() const { return rows_.empty(); }

  /// Head and rows, each line with `indent` spaces before it and none at its end.
  std::string text(std::size_t indent = 2) const;

 private:
  std::vector<std::string> heads_;
  std::vector<bool> is_right_;
  std::vector<std::vector<std::string>> rows_;
};

/// `1,234,567`.
std::string with_commas(std::int64_t number);

/// `512 B`, `1.5 KiB`, `25.0 MiB`.
std::string bytes_text(std::int64_t bytes);

/// `text`, or its first and last parts with `...` between them, in at most `length` characters.
std::string shortened(const std::string& text, std::size_t length);

}  // namespace trireme::graph
