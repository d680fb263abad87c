#include "trireme/command/nearest.h"

#include <algorithm>
#include <cstdint>

#include "trireme/evaluate/speech/word_error_rate.h"

namespace trireme::command {
namespace {

/// Each letter as a word: the edit distance of two texts is that of their letters.
std::string letters_apart(const std::string& text) {
  std::string result;
  for (const char letter : text) (result += letter) += ' ';
  return result;
}

}  // namespace

std::string nearest(const std::string& word, const std::vector<std::string>& names) {
  if (word.size() > 64) return "";
  std::string best;
  auto least = std::max<std::int64_t>(2, static_cast<std::int64_t>(word.size()) / 3);
  for (const std::string& name : names) {
    const std::int64_t edits =
        evaluate::count_word_errors(letters_apart(word), letters_apart(name)).errors();
    if (edits > least || (edits == least && !best.empty())) continue;
    least = edits;
    best = name;
  }
  return best;
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& names) {
  const std::string name = nearest(word, names);
  return name.empty() ? "" : "; did you mean '" + name + "'?";
}

}  // namespace trireme::command
