#include "trireme/plan/graph/text_table.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace trireme::graph {

Table::Table(std::vector<std::string> heads) : heads_(std::move(heads)) {
  for (std::string& head : heads_) {
    is_right_.push_back(head.starts_with('>'));
    if (is_right_.back()) head.erase(0, 1);
  }
}

std::string Table::text(std::size_t indent) const {
  std::vector<std::size_t> widths;
  for (const std::string& head : heads_) widths.push_back(head.size());
  for (const auto& row : rows_) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  const auto add_line = [&](const std::vector<std::string>& row) {
    std::string line(indent, ' ');
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string gap(widths[c] - row[c].size(), ' ');
      if (c > 0) line += "  ";
      line += is_right_[c] ? gap + row[c] : row[c] + gap;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  add_line(heads_);
  for (const auto& row : rows_) add_line(row);
  return text;
}

std::string with_commas(std::int64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (text.size() > (number < 0 ? 1 : 0) && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string bytes_text(std::int64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto amount = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; amount >= 1024 && unit + 1 < kUnits.size(); ++unit) amount /= 1024;
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s", amount, kUnits[unit]);
  return text.data();
}

std::string shortened(const std::string& text, std::size_t length) {
  if (text.size() <= length) return text;
  const std::size_t tail = (length - 3) / 2;
  return text.substr(0, length - 3 - tail) + "..." + text.substr(text.size() - tail);
}

}  // namespace trireme::graph
