#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "packs/text/data/tokenizer.h"
#include "packs/text/data/word_pieces.h"

namespace trireme::text {

/// How documents become tokens, whatever the tokenizer. Threads: immutable.
struct DocumentEncoder {
  std::function<std::vector<Token>(std::string_view document)> encode;  ///< With its end token.
  std::int64_t vocabulary_size = 0;
  std::string bytes;   ///< Of the tokenizer's file.
  std::string sha256;  ///< Of these.
};

/// Which parts of documents samples stay within.
enum class Passages : std::uint8_t { kParagraphs, kDocuments };

/// A document's tokens, the end token behind them.
DocumentEncoder encoder_of(const Tokenizer& tokenizer);

/// A document's passages, each sentence by sentence with [SEP] behind it and another one behind the
/// last:
///
///     the cat sat . [SEP] it slept . [SEP] [SEP]
///
/// A document without words is one [SEP].
DocumentEncoder encoder_of(const WordPieces& pieces, Passages passages);

}  // namespace trireme::text
