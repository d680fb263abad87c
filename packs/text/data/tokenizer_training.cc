#include <sentencepiece_trainer.h>

#include <string>
#include <unordered_map>

#include "packs/text/data/tokenizer.h"
#include "trireme/error.h"

namespace trireme::text {
namespace {

/// SentencePiece ignores what is longer than its limit, so texts are handed over in parts.
constexpr std::size_t kMaxPartBytes = 4000;

/// Whether SentencePiece can learn from a character. It marks unknown characters with U+2585, ends
/// of user's pieces with tabs, and leaves out a whole text where it meets the first.
bool is_learnt(std::string_view character) {
  return character != "\xE2\x96\x85" && character != "\t" && character != std::string_view("\0", 1);
}

/// Bytes of the character at the front.
std::size_t character_bytes(std::string_view text) {
  std::size_t bytes = 1;
  while (bytes < text.size() && (static_cast<unsigned char>(text[bytes]) & 0xC0U) == 0x80U) ++bytes;
  return bytes;
}

/// `text` without the characters that are not learnt.
std::string learnt_part(std::string_view text) {
  std::string part;
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    if (is_learnt(text.substr(0, bytes))) part += text.substr(0, bytes);
    text.remove_prefix(bytes);
  }
  return part;
}

/// Goes through the texts part by part, whole lines where they fit; none is empty.
class Parts : public sentencepiece::SentenceIterator {
 public:
  explicit Parts(std::span<const std::string> texts) : texts_(texts) { find(); }

  bool done() const override { return text_ == texts_.size(); }
  void Next() override { find(); }  // NOLINT(readability-identifier-naming): the vendor's name
  const std::string& value() const override { return part_; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  void find() {
    part_.clear();
    while (part_.empty()) {
      while (text_ < texts_.size() && begin_ == texts_[text_].size()) {
        ++text_;
        begin_ = 0;
      }
      if (done()) return;
      const std::string_view rest = std::string_view(texts_[text_]).substr(begin_);
      const std::size_t bytes = part_bytes(rest);
      part_ = learnt_part(rest.substr(0, bytes));
      begin_ += bytes;
    }
  }

  static std::size_t part_bytes(std::string_view rest) {
    if (rest.size() <= kMaxPartBytes) return rest.size();
    const std::size_t end = rest.find_last_of('\n', kMaxPartBytes - 1);
    if (end != std::string_view::npos) return end + 1;
    std::size_t cut = kMaxPartBytes;
    while (cut > 1 && (static_cast<unsigned char>(rest[cut]) & 0xC0U) == 0x80U) --cut;
    return cut;
  }

  std::span<const std::string> texts_;
  std::size_t text_ = 0;
  std::size_t begin_ = 0;  ///< In the text: bytes that were handed over.
  std::string part_;
};

std::unordered_map<std::string, std::string> trainer_options(const TokenizerOptions& options) {
  return {
      {"model_type", "unigram"},
      {"vocab_size", std::to_string(options.num_pieces)},
      {"hard_vocab_limit", "false"},
      {"character_coverage", std::to_string(options.character_coverage)},
      {"pad_id", "0"},
      {"eos_id", "1"},
      {"unk_id", "2"},
      {"bos_id", "-1"},
      // Nothing is unknown, nothing is changed: decoding gives the text back.
      {"byte_fallback", "true"},
      {"normalization_rule_name", "identity"},
      {"add_dummy_prefix", "false"},
      {"remove_extra_whitespaces", "false"},
      // Indentation is one token.
      {"allow_whitespace_only_pieces", "true"},
      {"split_digits", "true"},
      {"max_sentence_length", std::to_string(kMaxPartBytes + 1)},
      // Sums of floats are split over threads: their number decides the result.
      {"num_threads", "16"},
      {"minloglevel", "3"},
  };
}

}  // namespace

Tokenizer Tokenizer::train(std::span<const std::string> texts, const TokenizerOptions& options) {
  const auto refuse = [](const std::string& problem) {
    throw Error(ErrorKind::kInvalidArgument, "cannot train a tokenizer: " + problem);
  };
  if (options.num_pieces < 1) {
    refuse("expected at least one piece, got " + std::to_string(options.num_pieces));
  }
  if (!(options.character_coverage >= 0.5 && options.character_coverage <= 1)) {
    refuse("the character coverage is from 0.5 to 1, got " +
           std::to_string(options.character_coverage));
  }
  Parts parts(texts);
  // SentencePiece ends the process where it finds nothing to learn.
  if (parts.done()) refuse("there is no text");
  std::string model;
  const auto status =
      sentencepiece::SentencePieceTrainer::Train(trainer_options(options), &parts, &model);
  if (!status.ok()) {
    refuse(std::to_string(options.num_pieces) + " pieces of " + std::to_string(texts.size()) +
           " texts (256 of them are bytes): " + status.error_message());
  }
  return from_bytes(std::move(model), "a trained model");
}

}  // namespace trireme::text
