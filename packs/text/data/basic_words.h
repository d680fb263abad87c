#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::text {

/// Where libraries differ.
enum class WordRules : std::uint8_t {
  kBert,         ///< google-research/bert: a capital sigma is small as it stands in its word.
  kHuggingFace,  ///< `BertNormalizer` of tokenizers: it is small as within a word; private and unassigned characters are left out.
};

/// The words that uncased WordPiece vocabularies cut into pieces: runs of text between blanks, in
/// lower case and without accents, punctuation and CJK characters each a word of its own.
///
///     "Café 中文, (No.1)"   ->   cafe 中 文 , ( no . 1 )
///
/// Control characters are left out, and so is what is not UTF-8.
///
/// text     any bytes.
/// Source   `BasicTokenizer` of google-research/bert. Characters are classified as in Unicode 15.
std::vector<std::string> basic_words(std::string_view text, WordRules rules = WordRules::kBert);

}  // namespace trireme::text
