#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace trireme::text {

/// What a Hugging Face `tokenizer.json` of an uncased BERT says.
struct WordPieceFile {
  std::string vocabulary;  ///< As vocab.txt has it: a piece a line, by token.
  std::int64_t most_word_characters = 0;
};

/// Whether these bytes are an object of JSON, and no vocab.txt.
bool is_tokenizer_file(std::string_view bytes);

/// Model WordPiece with pieces that go on by `##`, normalizer and pre-tokenizer of BERT in small letters and without accents. What
/// is put around texts (`post_processor`) and how they are shown (`decoder`) does not count here.
///
/// origin   what is read (a path), for messages.
/// Errors   kCorruptData where it is no such JSON; kInvalidArgument, saying what it is and what was expected, for another model
///          (BPE, Unigram), words that are cut otherwise, and tokens that are no pieces of the vocabulary.
WordPieceFile parse_word_piece_file(std::string_view bytes, std::string_view origin);

}  // namespace trireme::text
