#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trireme::text {

/// The words that uncased WordPiece vocabularies cut into pieces: runs of text between blanks, in
/// lower case and without accents, punctuation and CJK characters each a word of its own.
///
///     "Café 中文, (No.1)"   ->   cafe 中 文 , ( no . 1 )
///
/// Control characters are left out, and so is what is not UTF-8.
///
/// text     any bytes.
/// Source   `BasicTokenizer` of google-research/bert. Characters are classified as in Unicode 15.
std::vector<std::string> basic_words(std::string_view text);

}  // namespace trireme::text
