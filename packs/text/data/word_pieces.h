#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "packs/text/data/basic_words.h"
#include "packs/text/data/tokenizer.h"

namespace trireme::text {

/// The tokens of a vocabulary of BERT that stand for no text. Texts never give one but `unknown`.
struct PairTokens {
  Token padding = 0;
  Token unknown = 100;
  Token first = 101;      ///< [CLS], before the first segment.
  Token separator = 102;  ///< [SEP], behind each segment.
  Token mask = 103;
};

/// Text to tokens by a WordPiece vocabulary: each of the basic words (basic_words.h) is cut into the
/// longest pieces of the vocabulary, from left to right; pieces that begin with `##` go on within a
/// word. A word of which a part is no piece, or of more than 200 characters, is [UNK]. Of a
/// tokenizer.json words and characters are those of Hugging Face's library, so that tokens are, too.
///
/// A value, cheap to copy. Threads: immutable.
/// Source   Wu et al., arXiv 1609.08144, section 4.1; `FullTokenizer` of google-research/bert.
class WordPieces {
 public:
  /// Makes a vocabulary of the pieces that byte-pair encoding finds in the basic words of `texts`.
  ///
  /// options   num_pieces counts the five that stand for no text. Short texts give fewer.
  /// Errors    kInvalidArgument where there is nothing to learn.
  /// Order     the result depends on texts and options only.
  static WordPieces train(std::span<const std::string> texts, const TokenizerOptions& options = {});

  /// A vocabulary in a file, or its content: `vocab.txt`, a piece a line, the first is token 0; or a
  /// `tokenizer.json` of an uncased BERT (tokenizer_file.h).
  ///
  /// origin   what is read (a path), for messages.
  /// Errors   those of read_file and parse_word_piece_file; kInvalidArgument where [PAD], [UNK],
  ///          [CLS], [SEP] or [MASK] is missing.
  static WordPieces load(const std::filesystem::path& path);
  static WordPieces from_vocabulary(std::string vocabulary, std::string_view origin);

  /// The tokens of `text`, none that stand for no text but [UNK].
  std::vector<Token> encode(std::string_view text) const;

  /// The pieces of `tokens`, those of a word together, a blank between words. kInvalidArgument for an
  /// id outside of the vocabulary.
  std::string decode(std::span<const Token> tokens) const;

  Token vocabulary_size() const { return static_cast<Token>(state_->pieces.size()); }
  const PairTokens& special() const { return state_->special; }

  /// What `load` reads.
  const std::string& bytes() const { return state_->bytes; }
  const std::string& sha256() const { return state_->sha256; }

 private:
  struct Hash {
    using is_transparent = void;  // NOLINT(readability-identifier-naming): the standard's name
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };
  using Pieces = std::unordered_map<std::string, Token, Hash, std::equal_to<>>;

  struct State {
    std::vector<std::string> pieces;     ///< By token.
    Pieces beginnings;                   ///< Of words.
    Pieces continuations;                ///< Without their `##`.
    std::size_t longest = 0;             ///< Bytes of the longest piece.
    std::int64_t most_characters = 200;  ///< Of a word that is no [UNK].
    WordRules rules = WordRules::kBert;
    PairTokens special;
    std::string bytes;
    std::string sha256;
  };

  explicit WordPieces(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  void append(std::string_view word, std::vector<Token>& tokens) const;

  std::shared_ptr<const State> state_;  // of all copies
};

}  // namespace trireme::text
