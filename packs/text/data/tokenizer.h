#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "packs/text/data/span_corruption.h"

namespace sentencepiece {
class SentencePieceProcessor;  // NOLINT(readability-identifier-naming): the vendor's name
}  // namespace sentencepiece

namespace trireme::text {

using data::Token;

/// How a tokenizer is trained. All of it changes results.
struct TokenizerOptions {
  /// Pieces of the vocabulary, sentinels not counted: T5's 32,000. Short texts give fewer.
  std::int32_t num_pieces = 32'000;

  /// Part of the characters that get a piece each; rarer ones are written in bytes.
  double character_coverage = 0.9995;  ///< From 0.5 on.

  std::int64_t sample_bytes = 8'000'000;  ///< At most so much text is looked at.
  std::uint64_t seed = 0;                 ///< Picks that text.
};

/// Text to tokens and back, by a SentencePiece model and the sentinels of T5.
///
/// Ids: the model's pieces, then 100 sentinels; sentinel k is vocabulary_size() - 1 - k. A model
/// trained here has padding 0, end 1, unknown 2, the 256 bytes, then what it learnt; it does not
/// normalize, and decode(encode(x)) == x for every x in UTF-8.
///
/// A value, cheap to copy. Threads: immutable.
/// Source   Kudo, "Subword regularization", ACL 2018, section 3.2 (the unigram model).
class Tokenizer {
 public:
  static constexpr Token kNumSentinels = 100;

  /// Trains a unigram model on `texts`, UTF-8. Fewer pieces than asked for where they hold no more.
  ///
  /// Errors   kInvalidArgument where the texts are empty or have more characters than there are
  ///          pieces: the message has SentencePiece's own reason.
  /// Cost     10 s of processor time and 200 MB for 8 MB of source code. Blocking.
  /// Order    the result depends on texts and options only, not on the machine's cores.
  static Tokenizer train(std::span<const std::string> texts, const TokenizerOptions& options = {});

  /// A model in a file, `spiece.model`, or the bytes of one, trained here or elsewhere.
  ///
  /// origin   what is read (a path), for messages.
  /// Errors   those of read_file; kCorruptData where it is no model; kInvalidArgument where it has
  ///          no token for the end of a text.
  static Tokenizer load(const std::filesystem::path& path);
  static Tokenizer from_bytes(std::string model, std::string_view origin);

  /// The tokens of `text`, no end token. Empty for an empty text.
  std::vector<Token> encode(std::string_view text) const;

  /// The text of `tokens`. Padding and end give nothing, sentinel k `<extra_id_k>`.
  /// kInvalidArgument for an id outside of the vocabulary.
  std::string decode(std::span<const Token> tokens) const;

  Token vocabulary_size() const { return num_pieces_ + kNumSentinels; }
  Token num_pieces() const { return num_pieces_; }
  data::SpecialTokens special() const;
  Token end() const { return end_; }

  /// Padding; of a model without one, the unknown token.
  Token padding() const { return padding_; }

  /// What `load` reads.
  const std::string& bytes() const { return *bytes_; }
  const std::string& sha256() const { return sha256_; }

 private:
  /// A character that goes around the model, in bytes.
  struct Spelled {
    std::string character;
    std::vector<Token> tokens;
  };

  Tokenizer() = default;
  void append(std::string_view text, std::vector<Token>& tokens) const;

  // Shared by copies; both immutable.
  std::shared_ptr<const sentencepiece::SentencePieceProcessor> model_;
  std::shared_ptr<const std::string> bytes_;
  std::string sha256_;
  Token num_pieces_ = 0;
  Token end_ = 0;
  Token padding_ = 0;
  std::vector<Spelled> spelled_;  ///< Empty where the model has no bytes.
};

}  // namespace trireme::text
