#include "packs/text/data/basic_words.h"

#include <utf8.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <utility>

#include "packs/text/data/documents.h"

namespace trireme::text {
namespace {

constexpr char32_t kMended = 0xFFFD;
constexpr char32_t kSigma = 0x03A3, kFinalSigma = 0x03C2;

utf8proc_category_t category_of(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool is_blank(char32_t c) {
  if (c == U' ' || c == U'\t' || c == U'\n' || c == U'\r') return true;
  if (c < 0x80) return false;
  const auto category = category_of(c);
  return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
         category == UTF8PROC_CATEGORY_ZP;
}

/// Asked after `is_blank`.
bool is_left_out(char32_t c, WordRules rules) {
  if (c < 0x80) return c < 0x20 || c == 0x7F;
  const auto category = category_of(c);
  if (c == kMended || category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF) {
    return true;
  }
  return rules == WordRules::kHuggingFace &&
         (category == UTF8PROC_CATEGORY_CO || category == UTF8PROC_CATEGORY_CN);
}

/// The blocks of ideographs that the source names; kana and hangul are no part of them.
bool is_ideograph(char32_t c) {
  constexpr std::array<std::pair<char32_t, char32_t>, 8> kRanges = {{{0x4E00, 0x9FFF},
                                                                     {0x3400, 0x4DBF},
                                                                     {0x20000, 0x2A6DF},
                                                                     {0x2A700, 0x2B73F},
                                                                     {0x2B740, 0x2B81F},
                                                                     {0x2B820, 0x2CEAF},
                                                                     {0xF900, 0xFAFF},
                                                                     {0x2F800, 0x2FA1F}}};
  return std::ranges::any_of(
      kRanges, [c](const auto& range) { return c >= range.first && c <= range.second; });
}

/// Symbols of ASCII count, `$` too.
bool is_punctuation(char32_t c) {
  if (c < 0x80) {
    return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) ||
           (c >= 123 && c <= 126);
  }
  const auto category = category_of(c);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

bool is_mark(char32_t c) { return c >= 0x80 && category_of(c) == UTF8PROC_CATEGORY_MN; }

bool is_cased(char32_t c) {
  const auto category = category_of(c);
  return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL ||
         category == UTF8PROC_CATEGORY_LT;
}

/// Whether the letter before comes last in its word, as sigma is written then.
bool ends_word(std::u32string_view before, std::u32string_view after) {
  const auto is_letter = [](char32_t c) { return !is_mark(c); };
  const auto last = std::find_if(before.rbegin(), before.rend(), is_letter);
  const auto next = std::ranges::find_if(after, is_letter);
  return last != before.rend() && is_cased(*last) && (next == after.end() || !is_cased(*next));
}

std::u32string lower(std::u32string_view word, WordRules rules) {
  std::u32string result;
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (rules == WordRules::kBert && word[i] == kSigma &&
        ends_word(word.substr(0, i), word.substr(i + 1))) {
      result += kFinalSigma;
    } else {
      result += static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(word[i])));
    }
  }
  return result;
}

/// Letters and the marks on them as characters of their own (NFD), without the marks.
std::u32string without_accents(const std::u32string& word) {
  if (std::ranges::all_of(word, [](char32_t c) { return c < 0x80; })) return word;
  const std::string bytes = utf8::utf32to8(word);
  std::vector<utf8proc_int32_t> parts(word.size() * 4 + 16);
  const auto decompose = [&] {
    return utf8proc_decompose(reinterpret_cast<const utf8proc_uint8_t*>(bytes.data()),
                              static_cast<utf8proc_ssize_t>(bytes.size()), parts.data(),
                              static_cast<utf8proc_ssize_t>(parts.size()), UTF8PROC_DECOMPOSE);
  };
  utf8proc_ssize_t count = decompose();
  if (count > std::ssize(parts)) {
    parts.resize(static_cast<std::size_t>(count));
    count = decompose();
  }
  std::u32string result;
  for (utf8proc_ssize_t i = 0; i < count; ++i) {
    const auto c = static_cast<char32_t>(parts[static_cast<std::size_t>(i)]);
    if (!is_mark(c)) result += c;
  }
  return result;
}

/// Adds a run between blanks, cut around punctuation.
void add_words(std::u32string_view run, WordRules rules, std::vector<std::string>& words) {
  std::u32string word;
  const auto flush = [&] {
    if (!word.empty()) words.push_back(utf8::utf32to8(word));
    word.clear();
  };
  for (const char32_t c : without_accents(lower(run, rules))) {
    if (!is_punctuation(c)) {
      word += c;
      continue;
    }
    flush();
    words.push_back(utf8::utf32to8(std::u32string(1, c)));
  }
  flush();
}

}  // namespace

std::vector<std::string> basic_words(std::string_view text, WordRules rules) {
  std::string valid(text);
  repair_utf8(valid);
  std::vector<std::string> words;
  std::u32string run;
  const auto flush = [&] {
    if (!run.empty()) add_words(run, rules, words);
    run.clear();
  };
  for (const char32_t c : utf8::utf8to32(valid)) {
    if (is_blank(c) || is_ideograph(c)) flush();
    if (is_blank(c) || is_left_out(c, rules)) continue;
    run += c;
    if (is_ideograph(c)) flush();
  }
  flush();
  return words;
}

}  // namespace trireme::text
