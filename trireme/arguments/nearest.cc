#include "trireme/arguments/nearest.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace trireme::arguments {
namespace {

/// How many letters to insert, remove or replace (Levenshtein's distance): O(|a| |b|).
std::size_t edits_between(const std::string& a, const std::string& b) {
  std::vector<std::size_t> edits(b.size() + 1);  // from the letters of a so far to each head of b
  std::iota(edits.begin(), edits.end(), 0U);
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(edits[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = edits[j + 1];
      edits[j + 1] = std::min({replaced, diagonal + 1, edits[j] + 1});
    }
  }
  return edits.back();
}

}  // namespace

std::string nearest(const std::string& word, const std::vector<std::string>& names) {
  if (word.size() > 64) return "";
  std::string best;
  std::size_t least = std::max<std::size_t>(2, word.size() / 3);
  for (const std::string& name : names) {
    const std::size_t edits = edits_between(word, name);
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

}  // namespace trireme::arguments
