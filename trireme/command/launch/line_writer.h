#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace trireme::launch {

/// Longer lines are broken into several.
inline constexpr std::size_t kMaxLine = std::size_t{1} << 20;

/// Takes text in pieces and writes it to a descriptor line by line, each with a prefix and in as
/// few writes as the system allows, so that lines of several writers do not mix.
///
/// Caller-synchronised. Does nothing more once the descriptor cannot be written to.
class LineWriter {
 public:
  LineWriter(std::string prefix, int target) : prefix_(std::move(prefix)), target_(target) {}

  void add(std::string_view text);

  /// Writes a last line that has no end, with one.
  void finish();

 private:
  void append(std::string_view line, std::string& lines) const;
  void write(std::string_view text);

  const std::string prefix_;
  int target_;
  std::string rest_;  ///< Of a line whose end has not come.
};

}  // namespace trireme::launch
