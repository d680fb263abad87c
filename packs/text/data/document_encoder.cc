#include "packs/text/data/document_encoder.h"

#include "packs/text/data/sentences.h"

namespace trireme::text {
namespace {

std::vector<Token> encode_passages(const WordPieces& pieces, std::string_view document,
                                   Passages passages) {
  const Token separator = pieces.special().separator;
  const std::vector<std::string_view> parts =
      passages == Passages::kParagraphs ? paragraphs_of(document) : std::vector{document};
  std::vector<Token> tokens;
  for (const std::string_view part : parts) {
    const std::size_t before = tokens.size();
    for (const std::string_view sentence : sentences_of(part)) {
      const std::vector<Token> words = pieces.encode(sentence);
      if (words.empty()) continue;
      tokens.insert(tokens.end(), words.begin(), words.end());
      tokens.push_back(separator);
    }
    if (tokens.size() > before) tokens.push_back(separator);
  }
  if (tokens.empty()) tokens.push_back(separator);
  return tokens;
}

}  // namespace

DocumentEncoder encoder_of(const Tokenizer& tokenizer) {
  return {.encode =
              [tokenizer](std::string_view document) {
                std::vector<Token> tokens = tokenizer.encode(document);
                tokens.push_back(tokenizer.end());
                return tokens;
              },
          .vocabulary_size = tokenizer.vocabulary_size(),
          .bytes = tokenizer.bytes(),
          .sha256 = tokenizer.sha256()};
}

DocumentEncoder encoder_of(const WordPieces& pieces, Passages passages) {
  return {.encode =
              [pieces, passages](std::string_view document) {
                return encode_passages(pieces, document, passages);
              },
          .vocabulary_size = pieces.vocabulary_size(),
          .bytes = pieces.bytes(),
          .sha256 = pieces.sha256()};
}

}  // namespace trireme::text
