#include "packs/text/data/sentences.h"

#include <algorithm>
#include <cstddef>

namespace trireme::text {
namespace {

constexpr std::string_view kBlanks = " \t\r\n\f\v";

bool is_one_of(char c, std::string_view characters) {
  return characters.find(c) != std::string_view::npos;
}

void add_trimmed(std::string_view part, std::vector<std::string_view>& parts) {
  const std::size_t begin = part.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return;
  parts.push_back(part.substr(begin, part.find_last_not_of(kBlanks) - begin + 1));
}

bool may_begin_sentence(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || is_one_of(c, "\"'([{") ||
         static_cast<unsigned char>(c) >= 0x80;
}

/// Where the sentence at the front of a line ends.
std::size_t sentence_length(std::string_view line) {
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (!is_one_of(line[i], ".!?")) continue;
    const std::size_t end = std::min(line.find_first_not_of(".!?\"')]}", i), line.size());
    const std::size_t next = line.find_first_not_of(" \t", end);
    if (next == std::string_view::npos) return line.size();
    if (next > end && may_begin_sentence(line[next])) return end;
    i = end - 1;
  }
  return line.size();
}

/// Calls `take` with each line.
template <typename Take>
void for_each_line(std::string_view text, Take take) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    take(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

std::vector<std::string_view> paragraphs_of(std::string_view text) {
  std::vector<std::string_view> paragraphs;
  const char* begin = text.data();
  for_each_line(text, [&](std::string_view line) {
    if (line.find_first_not_of(kBlanks) != std::string_view::npos) return;
    add_trimmed({begin, static_cast<std::size_t>(line.data() - begin)}, paragraphs);
    begin = line.data() + line.size();
  });
  add_trimmed({begin, static_cast<std::size_t>(text.data() + text.size() - begin)}, paragraphs);
  return paragraphs;
}

std::vector<std::string_view> sentences_of(std::string_view text) {
  std::vector<std::string_view> sentences;
  for_each_line(text, [&](std::string_view line) {
    while (!line.empty()) {
      const std::size_t length = sentence_length(line);
      add_trimmed(line.substr(0, length), sentences);
      line.remove_prefix(length);
    }
  });
  return sentences;
}

}  // namespace trireme::text
