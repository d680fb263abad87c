#include "trireme/launch/prefixed_lines.h"

#include <algorithm>

namespace trireme::launch {

std::string PrefixedLines::add(std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::size_t room = kMaxLine - rest_.size();
    const std::size_t count = std::min(end == std::string_view::npos ? text.size() : end, room);
    rest_ += text.substr(0, count);
    text.remove_prefix(count);
    const bool is_whole = !text.empty() && text.front() == '\n';
    if (is_whole) text.remove_prefix(1);
    if (is_whole || rest_.size() == kMaxLine) take_line(lines);
  }
  return lines;
}

std::string PrefixedLines::finish() {
  std::string lines;
  if (!rest_.empty()) take_line(lines);
  return lines;
}

void PrefixedLines::take_line(std::string& lines) {
  lines += prefix_;
  lines += rest_;
  lines += '\n';
  rest_.clear();
}

}  // namespace trireme::launch
