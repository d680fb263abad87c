#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace trireme::launch {

/// Longer lines are broken into several.
inline constexpr std::size_t kMaxLine = std::size_t{1} << 20;

/// Takes text in pieces and gives it back line by line, each with a prefix.
///
/// Caller-synchronised.
class PrefixedLines {
 public:
  explicit PrefixedLines(std::string prefix) : prefix_(std::move(prefix)) {}

  /// The lines that end in `text`.
  std::string add(std::string_view text);

  /// A last line that has no end, with one.
  std::string finish();

 private:
  void take_line(std::string& lines);

  std::string prefix_;
  std::string rest_;  ///< Of a line whose end has not come.
};

}  // namespace trireme::launch
